// Stands for election, and while it leads writes to a fenced resource under its term; once more after it was told that it no longer leads.
import { setTimeout as sleep } from 'node:timers/promises';
import { Leader } from 'holdfast';
import { LOCK_MS } from '../lock-times.mjs';
import { block, noteError, plan, random, resource, watch } from './actor.mjs';

const THING = 'leader:chief';

/** Answers how to stop. */
export function startLeading() {
  const { lockDuration, lockRenewTime, ...keeping } = plan.keeping;
  const leader = new Leader('chief', {
    connection: plan.connection,
    leaderTimeout: lockDuration,
    heartbeatInterval: lockRenewTime,
    ...keeping,
  });
  const holds = new Map();
  leader.on('error', noteError);
  leader.on('leader', (term) => {
    const isHeld = () => leader.term === term && leader.isLeader;
    holds.set(term, watch.take({ queue: 'chief', things: [THING], fence: term, isHeld }));
  });
  const leading = leader.run(async (signal, term) => {
    while (!signal.aborted) {
      await resource.write(THING, term);
      if (random.chance(0.01)) block(random.between(500, LOCK_MS + 1500));
      await sleep(random.between(...plan.beatMs), undefined, { signal }).catch(() => undefined);
    }
    holds.get(term)?.end('stepped down');
    holds.delete(term);
    await sleep(random.between(0, 1000));
    await resource.write(THING, term);
  });
  return async () => {
    await leader.close();
    await leading;
  };
}
