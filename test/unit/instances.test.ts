import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { instancesOf } from '../../src/lock/instances.js';
import { Queue } from '../../src/queue/queue.js';
import type { SessionInfo } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { sleep, until } from '../support/wait/until.js';

let store: FaultyStore;
let opened: { close(): Promise<unknown> }[];

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  opened = [];
});
afterEach(async () => {
  store.clear();
  await Promise.all(opened.map((each) => each.close()));
});

function newQueue(options = {}): Queue {
  const queue = new Queue('mail', { connection: store, ...options });
  opened.push(queue);
  return queue;
}

function newWorker(options = {}): { worker: Worker; errors: Error[] } {
  const worker = new Worker('mail', () => sleep(60_000, undefined, { ref: false }), { connection: store, ...options });
  const errors: Error[] = [];
  worker.on('error', (error) => errors.push(error));
  opened.push({ close: () => worker.close(true) });
  return { worker, errors };
}

describe('the list of instances', () => {
  const session = (id: string, instance: string, pid: number, more: Partial<SessionInfo> = {}): SessionInfo => ({
    queue: 'mail',
    id,
    owner: { host: 'h', pid, name: 'worker', instance },
    durationMs: 30_000,
    since: 1000,
    renewals: 3,
    expiresInMs: 20_000,
    suspected: false,
    slots: 2,
    locks: 1,
    ...more,
  });

  test('adds up the living sessions of each process and instance id', () => {
    const sessions = [
      session('a', 'one', 1),
      session('b', 'one', 1, { slots: 0, locks: 0, since: 500, expiresInMs: 25_000 }),
      session('c', 'one', 2),
      session('d', 'two', 1),
      session('e', 'dead', 3, { expiresInMs: -1 }),
    ];
    const leadership = {
      name: 'x',
      token: 't',
      fence: 1,
      session: 'b',
      owner: sessions[1]?.owner as never,
      since: 0,
      endsInMs: 1,
      waiting: 0,
    };
    expect(instancesOf(sessions, leadership, 100_000)).toEqual([
      { id: 'one', host: 'h', pid: 1, workers: 1, slots: 2, running: 1, since: 500, lastSeen: 95_000, leader: true },
      { id: 'one', host: 'h', pid: 2, workers: 1, slots: 2, running: 1, since: 1000, lastSeen: 90_000, leader: false },
      { id: 'two', host: 'h', pid: 1, workers: 1, slots: 2, running: 1, since: 1000, lastSeen: 90_000, leader: false },
    ]);
  });

  test('shows workers, slots and running jobs of this process, and follows them', async () => {
    const queue = newQueue();
    const { worker } = newWorker({ concurrency: 3, lockDuration: 400, lockRenewTime: 50 });
    newWorker({ concurrency: 2 });
    await queue.addBulk([{ name: 'a' }, { name: 'b' }]);
    await until('both to run', async () => (await queue.getInstances())[0]?.running === 2);
    const [instance] = await queue.getInstances();
    expect(instance).toMatchObject({ host: hostname(), pid: process.pid, workers: 2, slots: 5, leader: false });
    expect(Math.abs((instance?.lastSeen ?? 0) - Date.now())).toBeLessThan(5000);
    worker.concurrency = 7;
    await until('the change to be told', async () => (await queue.getInstances())[0]?.slots === 9);
    await worker.pause(true);
    await until('the pause to be told', async () => (await queue.getInstances())[0]?.slots === 2);
    expect((await queue.getInstances())[0]).toMatchObject({ workers: 1 });
    worker.resume();
    await until('the end of the pause to be told', async () => (await queue.getInstances())[0]?.slots === 9);
  });

  test('counts all parts of a process as one instance, unless they are named', async () => {
    const queue = newQueue();
    await queue.takeLock('x');
    await newWorker().worker.waitUntilReady();
    expect(await queue.getInstances()).toHaveLength(1);
    await newWorker({ instanceId: 'other:1' }).worker.waitUntilReady();
    expect((await queue.getInstances()).map(({ id }) => id)).toContain('other:1');
  });
});

describe('two living processes with the same instanceId', () => {
  const elsewhere = { host: 'elsewhere', pid: 1, name: 'worker', instance: 'twin' };

  async function twin(): Promise<void> {
    await store.openSession({ queue: 'mail', id: 'twin', owner: elsewhere, durationMs: 60_000, maxStalls: 1, slots: 1 });
  }

  test('each emit one error', async () => {
    await twin();
    const { errors, worker } = newWorker({ instanceId: 'twin', lockDuration: 200 });
    await worker.waitUntilReady();
    const beat = setInterval(() => void store.renew([{ queue: 'mail', id: 'twin', acked: 0 }]), 20);
    await until('it to be told', () => errors.length > 0);
    expect(errors[0]).toMatchObject({ code: 'INSTANCE_TAKEN', message: expect.stringContaining('process 1 on elsewhere') });
    await sleep(600);
    clearInterval(beat);
    expect(errors).toHaveLength(1);
  });

  test('are not reported for a program that was killed and restarted', async () => {
    await twin();
    const { errors, worker } = newWorker({ instanceId: 'twin', lockDuration: 200 });
    await worker.waitUntilReady();
    await sleep(700);
    expect(store.calls('sessions')).toBeGreaterThan(2);
    expect(errors).toEqual([]);
  });

  test('are not reported for two parts of one process', async () => {
    const { errors, worker } = newWorker({ instanceId: 'twin', lockDuration: 200 });
    const other = newWorker({ instanceId: 'twin', lockDuration: 200 });
    await worker.waitUntilReady();
    await sleep(600);
    expect([...errors, ...other.errors]).toEqual([]);
  });
});

test('limits all workers together with setGlobalConcurrency', async () => {
  const queue = newQueue();
  expect(await queue.getGlobalConcurrency()).toBeNull();
  await queue.setGlobalConcurrency(2);
  expect(await queue.getGlobalConcurrency()).toBe(2);
  expect(await queue.getMeta()).toMatchObject({ paused: false, concurrency: 2 });
  newWorker({ concurrency: 5 });
  newWorker({ concurrency: 5 });
  await queue.addBulk(Array.from({ length: 6 }, () => ({ name: 'x' })));
  await until('two to run', async () => (await queue.getActiveCount()) === 2);
  await sleep(100);
  expect(await queue.getActiveCount()).toBe(2);
  await queue.removeGlobalConcurrency();
  await until('all to run', async () => (await queue.getActiveCount()) === 6);
  expect(await queue.getGlobalConcurrency()).toBeNull();
  for (const bad of [0, -1, 1.5]) await expect(queue.setGlobalConcurrency(bad)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
});

test('never runs jobs with the same lockKey at once, and delays no other job', async () => {
  const queue = newQueue();
  let inside = 0;
  const seen: string[] = [];
  const worker = new Worker(
    'mail',
    async (job) => {
      if (job.opts.lockKey !== undefined) {
        inside += 1;
        expect(inside).toBe(1);
        await sleep(5);
        inside -= 1;
      }
      seen.push(job.name);
    },
    { connection: store, concurrency: 5 },
  );
  opened.push(worker);
  await queue.addBulk([
    ...Array.from({ length: 10 }, () => ({ name: 'keyed', opts: { lockKey: 'product-7' } })),
    { name: 'free' },
  ]);
  await until('all to end', async () => (await queue.getCompletedCount()) === 11);
  expect(seen.indexOf('free')).toBeLessThan(3);
  for (const lockKey of ['', 'x'.repeat(501), 7]) {
    await expect(queue.add('x', {}, { lockKey: lockKey as string })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'lockKey',
    });
  }
});
