import { describe } from 'vitest';
import { testManuals } from '../support/processes/manuals.js';

describe.each(['redis', 'postgres'] as const)('on %s', (engine) => {
  testManuals(engine);
});
