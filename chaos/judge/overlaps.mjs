// Runs of a job that began while an earlier one had not ended, whether its owner had been told by then or not. No violation by itself:
// nobody can stop a handler that does not listen.
import { byThing } from './holds.mjs';

export function overlapsOf(entries, holds) {
  const killedAt = new Map(entries.filter(({ event }) => event === 'killed').map(({ victim, at }) => [victim, at]));
  const endOf = ({ who, endAt }) => Math.min(endAt ?? Number.POSITIVE_INFINITY, killedAt.get(who) ?? Number.POSITIVE_INFINITY);
  let count = 0;
  for (const [thing, runs] of byThing(holds)) {
    if (!thing.startsWith('job:')) continue;
    for (const run of runs)
      if (runs.some((other) => other.fence < run.fence && other.at < run.at && endOf(other) > run.at)) count += 1;
  }
  return count;
}
