import { describe } from 'vitest';
import { testManuals } from '../support/manuals.js';
import { inThisRun } from '../support/matrix.js';

describe.each(inThisRun(['redis', 'postgres'] as const))('on %s', (engine) => {
  testManuals(engine);
});
