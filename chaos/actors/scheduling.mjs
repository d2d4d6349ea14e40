// Makes the schedule of a queue, and makes it again now and then, as every process does that starts. It stays one schedule.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from '../job-name.mjs';
import { EVERY_MS, SCHEDULE } from '../schedules.mjs';
import { note, noteError, plan } from './actor.mjs';

const AGAIN_MS = 7000;
const RETRY_MS = 300;

/** Each slot gets a job, however late the schedule is: then none may be missing. Answers how to stop. */
export function startScheduling(queue) {
  const over = new AbortController();
  const repeat = { every: EVERY_MS, catchUp: 'all' };
  const template = { name: 'little', data: { does: 'little', lastsMs: 5, stubborn: false }, opts: plan.kept };
  const done = (async () => {
    while (!over.signal.aborted) {
      const isMade = await queue.upsertJobScheduler(SCHEDULE, repeat, template).then(
        () => true,
        (error) => noteError(error),
      );
      if (isMade) note('scheduled', { schedule: jobName(queue.name, `repeat:${SCHEDULE}`), everyMs: EVERY_MS });
      await sleep(isMade ? AGAIN_MS : RETRY_MS, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    over.abort();
    await done;
  };
}
