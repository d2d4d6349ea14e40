// The control: what a leak of each kind looks like. Twenty steps in a run, however long it is.
import { randomBytes } from 'node:crypto';
import { openStore } from 'holdfast';
import { noteError, plan } from '../../chaos/actors/actor.mjs';

const OBJECTS_A_STEP = 40_000;
const JOBS_A_STEP = 50;
const DAY_MS = 86_400_000;
/** Nothing that a store could make smaller. */
const job = () => ({ name: 'forgotten', data: { text: randomBytes(7500).toString('base64') }, opts: { delay: DAY_MS } });

export const leakingStores = () => leaking(async () => [await openStore(plan.connection)]);
export const leakingMemory = () => leaking(() => Array.from({ length: OBJECTS_A_STEP }, (_, number) => ({ number })));
export const leakingJobs = (queue) => leaking(() => queue.addBulk(Array.from({ length: JOBS_A_STEP }, job)));

/** Answers how to stop and to give everything back. */
function leaking(take) {
  const taken = [];
  const step = async () => take();
  const takeMore = () => void taken.push(step().catch(noteError));
  const timer = plan.leak === undefined ? undefined : setInterval(takeMore, plan.leak.everyMs);
  return async () => {
    clearInterval(timer);
    // Also what is still being opened.
    for (const things of await Promise.all(taken)) for (const thing of things ?? []) await thing.close?.();
  };
}
