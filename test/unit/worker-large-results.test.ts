// The calls of a worker are bounded by bytes as well as by number: many large results that end together leave in several calls.
import { afterEach, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { REPLY_BYTES } from '../../src/store/budget.js';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Bytes of results in each settle that had any. */
function watchSettles(memory: MemoryStore): { store: Store; sent: number[] } {
  const sent: number[] = [];
  const settle: Store['settle'] = (queue, outcomes, call, claim) => {
    const bytes = outcomes.reduce((sum, outcome) => sum + (outcome.kind === 'completed' ? outcome.value.length : 0), 0);
    if (bytes > 0) sent.push(bytes);
    return memory.settle(queue, outcomes, call, claim);
  };
  const store = new Proxy<Store>(memory, {
    get(target, verb: keyof Store) {
      if (verb === 'settle') return settle;
      const value = target[verb];
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  return { store, sent };
}

test('sends large results that end together in calls within the byte budget', async () => {
  const memory = new MemoryStore();
  const { store, sent } = watchSettles(memory);
  const queue = new Queue('work', { connection: store });
  closing.push(
    () => memory.close(),
    () => queue.close(),
  );
  const JOBS = 10;
  const size = Math.floor(REPLY_BYTES * 0.4);
  await queue.addBulk(Array.from({ length: JOBS }, () => ({ name: 'job', data: {} })));
  const start = newGate();
  let running = 0;
  const worker = new Worker(
    'work',
    async () => {
      running += 1;
      if (running === JOBS) start.open();
      await start.opened;
      return 'x'.repeat(size);
    },
    { connection: store, concurrency: JOBS },
  );
  closing.push(() => worker.close());
  await until('all jobs to complete', async () => (await queue.getCompletedCount()) === JOBS);
  expect(Math.max(...sent)).toBeLessThanOrEqual(REPLY_BYTES);
  expect(sent.reduce((sum, bytes) => sum + bytes, 0)).toBe(JOBS * (size + 2));
});
