// Deliberate defects, and the seeds that find them.
import { KNOWN_SEEDS } from './known-seeds.js';
import { DEFECTS } from '../../simulation/defects/index.mjs';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';

export interface Defect {
  violates: string | string[];
  /** The store that the defect belongs to; absent if it belongs to the memory store or to all. */
  onlyOn?: SimulatedStore;
}

export interface Found {
  seed: number;
  invariant: string;
}

export type SimulatedStore = 'memory' | 'sqlite' | 'split';

const ALL = Object.entries(DEFECTS as Record<string, Defect>);

/** Those with these names, or all of the memory store. */
export function defectsOf(names?: string[]): [string, Defect][] {
  const chosen = ALL.filter(([name, { onlyOn }]) => (names === undefined ? onlyOn === undefined : names.includes(name)));
  if (names !== undefined && chosen.length !== names.length) throw new Error('There is a name of no defect.');
  return chosen;
}

/** Tries the seed that found the defect last time, then the seeds from 1 to `seeds`. */
export async function find(
  name: string,
  defect: Defect,
  { seeds, store }: { seeds: number; store: SimulatedStore },
): Promise<Found | undefined> {
  const known = KNOWN_SEEDS[store][name];
  if (known !== undefined) {
    const found = await violationOf(known, defect, store);
    if (found !== undefined) return found;
  }
  for (let seed = 1; seed <= seeds; seed += 1) {
    const found = await violationOf(seed, defect, store);
    if (found === undefined) continue;
    console.log(
      `Put the seed ${seed} into test/simulation/known-seeds.ts for "${name}" on ${store}: the seed there is out of date.`,
    );
    return found;
  }
  return undefined;
}

async function violationOf(seed: number, defect: Defect, store: SimulatedStore): Promise<Found | undefined> {
  const { violation } = await run(planOf(seed, store), { defect, store });
  return violation === undefined ? undefined : { seed, invariant: violation.invariant };
}
