// From a plan that fails to the least of it that still fails in the same way: faults, jobs, locks and commands are left out one by one.
import { run } from './run.mjs';

/** The letter that each kind of item has in `--only`. */
const KINDS = { f: 'faults', j: 'jobs', n: 'names', c: 'commands' };

export async function shrink(plan, invariant, options = {}) {
  let least = plan;
  for (let before; before !== least; ) {
    before = least;
    for (const kind of Object.values(KINDS)) {
      for (const item of [...least[kind]]) {
        const smaller = { ...least, [kind]: least[kind].filter((other) => other !== item) };
        if ((await run(smaller, options)).violation?.invariant === invariant) least = smaller;
      }
    }
  }
  return least;
}

/** What is left of a plan, as `--only` takes it. */
export function itemsOf(plan) {
  return Object.entries(KINDS).flatMap(([letter, kind]) => plan[kind].map(({ index }) => `${letter}${index}`));
}

/** The plan with these items alone. */
export function only(plan, items) {
  const known = new Set(itemsOf(plan));
  for (const item of items)
    if (!known.has(item)) throw new Error(`--only ${item}: seed ${plan.seed} has ${[...known].join(', ')}.`);
  const kept = Object.entries(KINDS).map(([letter, kind]) => [
    kind,
    plan[kind].filter(({ index }) => items.includes(`${letter}${index}`)),
  ]);
  return { ...plan, ...Object.fromEntries(kept) };
}
