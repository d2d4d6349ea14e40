// Hundreds of workers in one process share one connection to Redis, on which no call waits for a free one: none of them reports an outage.
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';
import { newServer } from '../engines/redis/support.js';
import { PACE, paced } from '../support/wait/pace.js';

/** As many as an idle machine starts in less than half a second: a call that waits for five seconds is reported. */
const WORKERS = Math.ceil(200 / PACE);
const JOBS = 2000;

test(`hundreds of workers of ten queues start, run ${JOBS} jobs and close without an error`, {
  timeout: paced(60_000),
}, async () => {
  const { url: connection } = await newServer();
  const names = Array.from({ length: 10 }, (_, n) => `q${n}`);
  const queues = names.map((name) => new Queue(name, { connection }));
  const errors: Error[] = [];
  let done = 0;
  const workers = Array.from({ length: WORKERS }, (_, n) => {
    const worker = new Worker(names[n % 10] ?? '', () => Promise.resolve((done += 1)), { connection });
    worker.on('error', (error) => errors.push(error));
    return worker;
  });
  onTestFinished(() => Promise.all([...workers, ...queues].map((one) => one.close())).then(() => undefined));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const jobs = Array.from({ length: JOBS / 10 }, () => ({ name: 'job', data: {} }));
  await Promise.all(queues.map((queue) => queue.addBulk(jobs)));
  await until('all jobs to be done', () => done === JOBS, 40_000);
  expect(errors).toEqual([]);
  expect(workers.every((worker) => worker.isHealthy())).toBe(true);
});
