// What is done with the jobs of the producers. Each run writes to a fenced resource when it begins and when it ends; a stubborn one goes
// on after it was told that its lock is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from '../job-name.mjs';
import { block, noteError, plan, random, resource, watch } from './actor.mjs';
import { doSteps } from './steps.mjs';

const ON_PURPOSE = 'on purpose';

const ownLockOf = ({ lock }) => ({ fence: lock.fence, isHeld: () => lock.held });

/** `lockOf(job, signal)`: { fence, isHeld }, for jobs that do not know it themselves. */
export const handlerOf =
  (queue, lockOf = ownLockOf) =>
  async (job, _token, signal) => {
    const { fence, ...lock } = lockOf(job, signal);
    const { key, does, lastsMs, stubborn, lockKey, unique, group } = job.data;
    const things = [`job:${jobName(queue, job.id)}`];
    if (lockKey !== undefined) things.push(`key:${jobName(queue, lockKey)}`);
    if (unique !== undefined) things.push(`unique:${jobName(queue, unique)}`);
    const ofGroup = group === undefined ? {} : { group: jobName(queue, group) };
    const rated = plan.hasRate && plan.queues.includes(queue) ? { startedOn: job.processedOn } : {};
    const hold = watch.take({ queue, things, fence, key, ...ofGroup, ...rated, ...lock, first: job.priority === 0 });
    let how = 'thrown';
    try {
      await writeAll(things, fence);
      // Only the first run takes its time.
      const ms = job.attemptsStarted === 1 ? lastsMs : Math.min(lastsMs, 20);
      if (does === 'steps') await doSteps(queue, job, signal);
      else if (does === 'block') block(ms);
      else await sleep(ms, undefined, stubborn ? {} : { signal }).catch(() => undefined);
      if (random.chance(0.2)) await job.updateProgress(50).catch(noteError);
      if (random.chance(0.1)) await job.log('half of it').catch(noteError);
      await writeAll(things, fence);
      how = 'returned';
    } finally {
      hold.end(how);
    }
    if (does === 'fail' || (does === 'fail once' && job.attemptsMade === 0)) throw new Error(ON_PURPOSE);
    return { key, fence };
  };

async function writeAll(things, fence) {
  for (const thing of things) await resource.write(thing, fence);
}
