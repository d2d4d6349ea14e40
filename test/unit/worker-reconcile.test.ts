// A store that went back in time: a replica that took over without the last writes, or a restored backup.
import { afterEach, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';

/** Reconciled after four lock durations. A process that does not run for so long loses its session, and its jobs stall. */
const options = { lockDuration: paced(500), lockRenewTime: 50, drainDelay: 1 };
const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

/** It acknowledges the first outcome, and knows nothing of it afterwards. */
function forgetful(store: MemoryStore): { connection: Store; forgotten(): string | undefined } {
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
  return { connection, forgotten: () => forgotten };
}

test('hands back a finished job that the store still lists as active for the worker', async () => {
  const { connection, forgotten } = forgetful(new MemoryStore());
  const queue = new Queue('work', { connection });
  const runs: string[] = [];
  const worker = new Worker('work', async ({ id }) => void runs.push(id), { connection, ...options });
  closing.push(queue, worker);
  const again = new Promise<void>((resolve) => {
    worker.on('completed', () => {
      if (runs.length === 2) resolve();
    });
  });
  const { id } = await queue.add('a', {});
  await again;
  expect(forgotten()).toBe(id);
  expect(runs).toEqual([id, id]);
  expect(await (await queue.getJob(id))?.getState()).toBe('completed');
  expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 1, stalledCounter: 0 });
});

test('reconciles at once after a call that had no reply at its first try, because a replica may have taken over', async () => {
  const { connection, forgotten } = forgetful(new MemoryStore());
  const store = new FaultyStore(connection);
  const queue = new Queue('work', { connection: store });
  const ran = newGate();
  const again = newGate();
  const runs: string[] = [];
  const handler = async ({ id }: { id: string }): Promise<void> => {
    runs.push(id);
    if (runs.length === 3) again.open();
  };
  // Without a failed call it would look after four lock durations.
  const worker = new Worker('work', handler, { connection: store, lockDuration: 60_000, drainDelay: 1 });
  worker.on('error', () => undefined);
  worker.once('completed', () => ran.open());
  closing.push(queue, worker);
  const lost = await queue.add('lost', {});
  await ran.opened;
  expect(forgotten()).toBe(lost.id);
  store.on('claim', { fault: 'fail', times: 1 });
  const next = await queue.add('next', {});
  await again.opened;
  expect(runs).toEqual([lost.id, next.id, lost.id]);
  expect(await queue.getJob(lost.id)).toMatchObject({ stalledCounter: 0 });
});

test('reconciles while all slots are busy', async () => {
  const { connection, forgotten } = forgetful(new MemoryStore());
  const queue = new Queue('work', { connection });
  const end = newGate();
  const longBegun = newGate();
  const busy = new Worker(
    'work',
    async ({ name }) => {
      if (name !== 'long') return;
      longBegun.open();
      await end.opened;
    },
    { connection, ...options },
  );
  closing.push(queue, busy, { close: async () => end.open() });
  const short = await queue.add('short', {});
  const long = await queue.add('long', {});
  await longBegun.opened;
  expect(forgotten()).toBe(short.id);
  const again = newGate<string>();
  closing.push(new Worker('work', async ({ id }) => again.open(id), { connection, ...options }));
  expect(await again.opened).toBe(short.id);
  expect(await (await queue.getJob(long.id))?.getState()).toBe('active');
});
