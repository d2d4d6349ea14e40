// Jobs of megabytes, through a queue and a worker with default options: they complete, and the event loop is not held up by them.
import { afterEach, expect, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { Worker } from '../../../src/worker/worker.js';
import { until } from '../../support/wait/until.js';
import { FULL } from '../../support/run/matrix.js';
import { newDatabase } from './support.js';
import { paced } from '../../support/wait/pace.js';

const MB = 1_000_000;
/** Of one turn of the loop, in processor time: on a busy machine other processes take wall time from it. */
const BLOCKED_MS = 250;
const TICK_MS = 10;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** The longest turn of the loop so far. */
function watchLoop(): () => number {
  let longest = 0;
  let at = performance.now();
  let used = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(used);
    longest = Math.max(longest, Math.min(performance.now() - at - TICK_MS, (user + system) / 1000));
    at = performance.now();
    used = process.cpuUsage();
  }, TICK_MS);
  closing.push(async () => clearInterval(timer));
  return () => longest;
}

/** In the gate, faults/large-jobs.test.ts has jobs of ten megabytes on this store when it is its turn. */
const LARGEST = FULL ? [[60, 10, 10] as const] : [];

test.each([...LARGEST, [30, 5, 30] as const])(
  '%i jobs of %i MB complete at concurrency %i',
  { timeout: paced(120_000) },
  async (count, megabytes, concurrency) => {
    const connection = await newDatabase();
    const queue = new Queue('large', { connection });
    closing.push(() => queue.close());
    const text = 'lorem ipsum "dolor" '.repeat((megabytes * MB) / 20);
    for (let n = 0; n < count; n += 1) await queue.add('job', { n, text });
    const done = new Set<number>();
    const errors: Error[] = [];
    const longest = watchLoop();
    const worker = new Worker(
      'large',
      async ({ data }: { data: { n: number; text: string } }) => {
        expect(data.text.length).toBe(text.length);
        done.add(data.n);
      },
      { connection, concurrency },
    );
    worker.on('error', (error) => errors.push(error));
    closing.push(() => worker.close());
    await until('all jobs to complete', async () => (await queue.getCompletedCount()) === count, 90_000);
    expect(done.size).toBe(count);
    expect(errors).toEqual([]);
    expect(longest()).toBeLessThan(BLOCKED_MS);
  },
);
