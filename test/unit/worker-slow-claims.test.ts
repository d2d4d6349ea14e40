// A store that cannot carry out a claim in time: the worker asks for fewer jobs, and does not repeat the same claim for ever.
import { expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';

test('a claim that took too long is repeated for half of the jobs, and all jobs run', async () => {
  const store = new FaultyStore(new MemoryStore());
  const counts: number[] = [];
  const error = new HoldfastError('TIMEOUT', 'the statement took too long', { retryable: true });
  const isTooMuch = (count: number): boolean => {
    counts.push(count);
    return count > 5;
  };
  store.on('claim', { fault: 'fail', error, when: (_queue, { count }) => isTooMuch(count) });
  store.on('settle', {
    fault: 'fail',
    error,
    when: (_queue, _outcomes, _call, claim) => claim !== undefined && isTooMuch(claim.count),
  });
  const queue = new Queue('work', { connection: store });
  await queue.addBulk(Array.from({ length: 40 }, (_, n) => ({ name: `${n}`, data: {} })));
  let runs = 0;
  // With a drainDelay of a minute, a worker that took the end of a smaller claim for the end of the list would wait too long.
  const worker = new Worker('work', () => void (runs += 1), { connection: store, concurrency: 20, prefetch: 0, drainDelay: 60 });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    await worker.close();
    await queue.close();
  });
  await until('all jobs to run', () => runs === 40);
  expect(counts.slice(0, 3)).toEqual([20, 10, 5]);
});
