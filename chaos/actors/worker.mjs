// Runs the jobs of the producers. Each run writes to a fenced resource when it begins and when it ends; a stubborn one goes on after it was
// told that its lock is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'holdfast';
import { block, endWith, note, noteError, plan, random, resource, watch } from './actor.mjs';

const ON_PURPOSE = 'on purpose';

async function work(job, _token, signal) {
  const { lock } = job;
  const { fence } = lock;
  const { key, does, lastsMs, stubborn, lockKey } = job.data;
  const things = [`job:${job.id}`, ...(lockKey === undefined ? [] : [`key:${lockKey}`])];
  const hold = watch.take({ queue: 'work', things, fence, isHeld: () => lock.held, key, first: job.priority === 0 });
  let how = 'thrown';
  try {
    await writeAll(things, fence);
    // Only the first run takes its time.
    const ms = job.attemptsStarted === 1 ? lastsMs : Math.min(lastsMs, 20);
    if (does === 'block') block(ms);
    else await sleep(ms, undefined, stubborn ? {} : { signal }).catch(() => undefined);
    if (random.chance(0.2)) await job.updateProgress(50).catch(noteError);
    await writeAll(things, fence);
    how = 'returned';
  } finally {
    hold.end(how);
  }
  if (does === 'fail' || (does === 'fail once' && job.attemptsMade === 0)) throw new Error(ON_PURPOSE);
  return { key, fence };
}

async function writeAll(things, fence) {
  for (const thing of things) await resource.write(thing, fence);
}

const worker = new Worker('work', work, {
  connection: plan.connection,
  name: plan.who,
  concurrency: 5,
  maxStalledCount: 1000,
  runRetryDelay: 1000,
  ...plan.keeping,
});
worker.on('completed', ({ id }, { fence }) => note('completed', { id, fence }));
worker.on('error', noteError);
endWith(() => worker.close());
