// How long what a killed process held stayed without an owner: from the kill to the next one who begins.
import { byThing } from './holds.mjs';

/** Sorted milliseconds for jobs, named locks and leadership. */
export function recoveriesOf(entries, holds) {
  const recoveries = { job: [], name: [], leader: [] };
  const things = byThing(holds);
  const killedAt = new Map(entries.filter(({ event }) => event === 'killed').map(({ victim, at }) => [victim, at]));
  for (const hold of holds) {
    const deadAt = killedAt.get(hold.who);
    const thing = hold.things[0];
    const list = recoveries[thing.split(':')[0]];
    // What it had ended or lost before is not recovered from its death; a job that lets others pass waits for more than that.
    if (deadAt === undefined || hold.endAt !== undefined || hold.toldAt !== undefined || hold.first === false) continue;
    const next = things.get(thing).find(({ fence }) => fence > hold.fence);
    if (next !== undefined && next.at > deadAt) list.push(next.at - deadAt);
  }
  for (const list of Object.values(recoveries)) list.sort((a, b) => a - b);
  return recoveries;
}
