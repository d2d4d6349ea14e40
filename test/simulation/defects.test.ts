// The simulation can fail: it finds every defect that was put in on purpose, and says which invariant it violates.
import { describe, expect, it } from 'vitest';
import { DEFECTS } from '../../simulation/defects/index.mjs';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';

/** The rarest is found about once in three hundred. */
const SEEDS = 3000;

interface Found {
  seed: number;
  invariant: string;
}

async function find(defect: unknown): Promise<Found | undefined> {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await run(planOf(seed), { defect });
    if (violation !== undefined) return { seed, invariant: violation.invariant };
  }
  return undefined;
}

describe('the simulation finds', () => {
  it.each(Object.entries(DEFECTS as Record<string, { violates: string | string[] }>))(
    '%s',
    { timeout: 300_000 },
    async (_, defect) => {
      const found = await find(defect);
      expect([defect.violates].flat()).toContain(found?.invariant);
    },
  );
});
