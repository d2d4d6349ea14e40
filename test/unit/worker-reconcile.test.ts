// A store that went back in time: a replica that took over without the last writes, or a restored backup.
import { expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import type { Store } from '../../src/store/contract.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { Worker } from '../../src/worker/worker.js';

test('what the store still holds for a worker that has finished it is handed back, although every reply came', async () => {
  const store = new MemoryStore();
  let forgotten: string | undefined;
  const settle: Store['settle'] = async (queue, outcomes, call, claim) => {
    if (forgotten !== undefined || outcomes.length === 0) return store.settle(queue, outcomes, call, claim);
    forgotten = outcomes[0]?.jobId;
    const reply = await store.settle(queue, [], call, claim);
    return { ...reply, results: ['done'] };
  };
  const connection = new Proxy(store, {
    get(target, key) {
      if (key === 'settle') return settle;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const queue = new Queue('work', { connection });
  const runs: string[] = [];
  const options = { connection, lockDuration: 200, lockRenewTime: 50, drainDelay: 1 };
  const worker = new Worker('work', async ({ id }) => void runs.push(id), options);
  const again = new Promise<void>((resolve) => {
    worker.on('completed', () => {
      if (runs.length === 2) resolve();
    });
  });
  const { id } = await queue.add('a', {});
  await again;
  expect(forgotten).toBe(id);
  expect(runs).toEqual([id, id]);
  expect(await (await queue.getJob(id))?.getState()).toBe('completed');
  expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 1, stalledCounter: 0 });
  await worker.close();
  await queue.close();
});
