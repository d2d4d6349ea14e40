// A store that cannot carry out a claim in time: the worker asks for fewer jobs, and does not repeat the same claim for ever.
import { expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

test.each([
  ['is repeated for half of the jobs', undefined],
  ['is repeated for half of the jobs, also after the reply to a larger one was lost', 10],
])('a claim that took too long %s, and all slots get their jobs', async (_what, lost) => {
  const store = new FaultyStore(new MemoryStore());
  const counts: number[] = [];
  const error = new HoldfastError('TIMEOUT', 'the statement took too long', { retryable: true });
  store.on('claim', {
    fault: 'fail',
    error,
    when: (_queue, { count }) => {
      counts.push(count);
      store.losesWakeUps = true;
      return count > 5 && count !== lost;
    },
  });
  store.on('claim', { fault: 'drop-reply', error, times: 1, when: (_queue, { count }) => count === lost });
  const queue = new Queue('work', { connection: store });
  await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: `${n}`, data: {} })));
  let running = 0;
  const goOn = newGate();
  // No job ends before all run, and the next look by the clock is a minute away: only the replies say that there are more jobs.
  const handler = async (): Promise<void> => {
    running += 1;
    await goOn.opened;
  };
  const worker = new Worker('work', handler, { connection: store, concurrency: 20, prefetch: 0, drainDelay: 60 });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    goOn.open();
    await worker.close();
    await queue.close();
  });
  await until('all jobs to run', () => running === 20);
  expect(counts[0]).toBe(20);
  expect(Math.min(...counts)).toBeLessThanOrEqual(5);
});
