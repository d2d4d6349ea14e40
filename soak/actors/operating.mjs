// What an operator does to queues, again and again: looks, pauses and resumes, trims the log, fills a queue of its own and wipes it out.
import { setTimeout as sleep } from 'node:timers/promises';
import { noteError, random } from '../../chaos/actors/actor.mjs';

const EVENTS_KEPT = 2000;
const STATES = ['waiting', 'active', 'delayed', 'completed', 'failed'];

/** Answers how to stop: nothing is paused then. */
export function startOperating(queues, scratch) {
  const leaving = new AbortController();
  const { signal } = leaving;
  const pause = (ms) => sleep(ms, undefined, { signal }).catch(() => undefined);
  const again = async ([least, most], act) => {
    while (!signal.aborted) {
      await pause(random.between(least, most));
      await act().catch(noteError);
    }
  };
  const resumed = async (queue) => {
    while (!(await queue.resume().then(() => true, noteError))) await sleep(200);
  };
  const running = [
    again([1000, 3000], () => look(random.of(queues))),
    again([20_000, 40_000], () => Promise.all(queues.map((queue) => queue.trimEvents(EVENTS_KEPT)))),
    again([10_000, 30_000], () => fillAndWipe(scratch)),
    again([30_000, 90_000], async () => {
      if (signal.aborted) return;
      const queue = random.of(queues);
      try {
        await queue.pause();
        await pause(random.between(500, 3000));
      } finally {
        await resumed(queue);
      }
    }),
  ];
  return async () => {
    leaving.abort();
    await Promise.all(running);
  };
}

async function look(queue) {
  await queue.getJobCounts(...STATES);
  const [job] = await queue.getJobs([random.of(STATES)], 0, 20);
  if (job !== undefined) await queue.getJob(job.id);
}

async function fillAndWipe(queue) {
  const jobs = Array.from({ length: 20 }, (_, index) => ({
    name: 'scratch',
    data: {},
    opts: index % 2 === 0 ? {} : { delay: 60_000 },
  }));
  await queue.addBulk(jobs);
  await queue.clean(0, 5, 'wait');
  await queue.drain();
  await queue.obliterate({ force: true });
}
