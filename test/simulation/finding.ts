// Deliberate defects, and the first seed that finds one.
import { DEFECTS } from '../../simulation/defects/index.mjs';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';

export interface Defect {
  violates: string | string[];
}

export interface Found {
  seed: number;
  invariant: string;
}

const ALL = Object.entries(DEFECTS as Record<string, Defect>);

/** Those with these names, or all. */
export function defectsOf(names?: string[]): [string, Defect][] {
  const chosen = names === undefined ? ALL : ALL.filter(([name]) => names.includes(name));
  if (names !== undefined && chosen.length !== names.length) throw new Error('There is a name of no defect.');
  return chosen;
}

export async function find(defect: Defect, { seeds, store }: { seeds: number; store?: string }): Promise<Found | undefined> {
  const options = store === undefined ? { defect } : { defect, store };
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violation } = await run(planOf(seed), options);
    if (violation !== undefined) return { seed, invariant: violation.invariant };
  }
  return undefined;
}
