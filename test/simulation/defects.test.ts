// The simulation can fail: it finds every defect that was put in on purpose, and says which invariant it violates.
import { describe, expect, it } from 'vitest';
import { defectsOf, find } from './finding.js';

/** The rarest is found about once in a hundred. */
const SEEDS = 3000;

describe('the simulation finds', () => {
  it.each(defectsOf())('%s', { timeout: 300_000 }, async (name, defect) => {
    const found = await find(name, defect, { seeds: SEEDS, store: 'memory' });
    expect([defect.violates].flat()).toContain(found?.invariant);
  });
});
