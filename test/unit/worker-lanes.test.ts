// Two calls of a worker in flight: no more jobs in hand than slots, no job twice, and what one call was granted is not taken for a stray
// by the other.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { sleep, until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

interface Watched {
  store: Store;
  inFlight: number;
  most: number;
  /** Lanes of the calls, as they came. */
  lanes: number[];
  active: number;
  mostActive: number;
}

let memory: MemoryStore;
let closing: (() => Promise<void>)[];

beforeEach(() => {
  memory = new MemoryStore({ lanes: 2 });
  closing = [];
});

afterEach(async () => {
  for (const close of closing.reverse()) await close();
  await memory.close();
});

/** A store whose replies take a while, and that knows how many calls of workers it is at. */
function slow(right: Store, ms: number): Watched {
  const watched: Watched = { store: right, inFlight: 0, most: 0, lanes: [], active: 0, mostActive: 0 };
  const watch = async <T>(lane: number | undefined, work: () => Promise<T>): Promise<T> => {
    watched.inFlight += 1;
    watched.most = Math.max(watched.most, watched.inFlight);
    watched.lanes.push(lane ?? 0);
    try {
      const reply = await work();
      watched.mostActive = Math.max(watched.mostActive, (await memory.status('work')).counts.active);
      await sleep(ms);
      return reply;
    } finally {
      watched.inFlight -= 1;
    }
  };
  const verbs: Partial<Store> = {
    settle: (queue, outcomes, call, claim) => watch(call?.lane, () => right.settle(queue, outcomes, call, claim)),
    claim: (queue, request) => watch(request.lane, () => right.claim(queue, request)),
  };
  watched.store = new Proxy(right, {
    get(target, verb: keyof Store) {
      const value = verbs[verb] ?? target[verb];
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  return watched;
}

function newQueue(connection: Store): Queue {
  const queue = new Queue('work', { connection });
  closing.push(() => queue.close());
  return queue;
}

function newWorker(connection: Store, handler: (job: { id: string }) => Promise<unknown>, options: WorkerOptions = {}): Worker {
  const worker = new Worker('work', handler, { connection, ...options });
  closing.push(() => worker.close());
  return worker;
}

test('processes a backlog with two calls in flight, each job once, never more jobs than slots', async () => {
  const watched = slow(memory, 3);
  const queue = newQueue(memory);
  await queue.addBulk(Array.from({ length: 200 }, (_, index) => ({ name: 'a', data: { index } })));
  const runs: string[] = [];
  let running = 0;
  let mostRunning = 0;
  const worker = newWorker(
    watched.store,
    async ({ id }) => {
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      runs.push(id);
      await sleep(Number(id) % 3);
      running -= 1;
    },
    { concurrency: 10 },
  );
  await until('all are done', async () => (await queue.getCompletedCount()) === 200);
  expect(new Set(runs).size).toBe(200);
  expect(runs).toHaveLength(200);
  expect(mostRunning).toBe(10);
  expect(watched.mostActive).toBeLessThanOrEqual(10);
  expect(watched.most).toBe(2);
  expect(new Set(watched.lanes)).toEqual(new Set([0, 1]));
  await worker.close();
});

test('makes one call at a time when the worker is not busy', async () => {
  const watched = slow(memory, 5);
  const queue = newQueue(memory);
  const worker = newWorker(watched.store, async () => undefined, { concurrency: 10 });
  for (let n = 1; n <= 10; n += 1) {
    await queue.add('a', {});
    await until('it is done', async () => (await queue.getCompletedCount()) === n);
  }
  expect(watched.most).toBe(1);
  await worker.close();
});

test('keeps the jobs of one call when the reply of the other is lost', async () => {
  const faulty = new FaultyStore(memory);
  const watched = slow(faulty, 2);
  const queue = newQueue(memory);
  await queue.addBulk(Array.from({ length: 400 }, (_, index) => ({ name: 'a', data: { index } })));
  const runs: string[] = [];
  const errors: Error[] = [];
  let settles = 0;
  const seventh = (): boolean => {
    settles += 1;
    return settles % 7 === 0;
  };
  faulty.on('settle', { when: seventh, fault: 'drop-reply' });
  const worker = newWorker(watched.store, async ({ id }) => void runs.push(id), { concurrency: 8 });
  worker.on('error', (error) => errors.push(error));
  await until('all are done', async () => (await queue.getCompletedCount()) === 400, 20_000);
  expect(watched.most).toBe(2);
  expect(runs.toSorted()).toEqual([...new Set(runs)].toSorted());
  expect(new Set(errors.map(({ name, message }) => `${name} ${message}`)).size).toBe(1);
  const jobs = await queue.getCompleted(0, 399);
  expect(jobs.filter(({ attemptsMade, stalledCounter }) => attemptsMade !== 1 || stalledCounter !== 0)).toEqual([]);
  await worker.close();
});

test('does not hand back jobs of a call without a reply when the other call reconciles', async () => {
  const faulty = new FaultyStore(memory);
  const held = faulty.on('settle', { when: (_, __, call) => call?.lane === 0, times: 1, fault: 'hold-reply' });
  const lost = faulty.on('settle', { when: (_, __, call) => call?.lane === 1, times: 1, fault: 'drop-reply' });
  const queue = newQueue(memory);
  const [a, b, c, d, ...rest] = await queue.addBulk(Array.from({ length: 8 }, () => ({ name: 'a', data: {} })));
  const gates = new Map([a, b, c, d].map((job) => [job?.id, newGate()]));
  const runs: string[] = [];
  const errors: Error[] = [];
  const worker = newWorker(
    faulty,
    async ({ id }) => {
      runs.push(id);
      await gates.get(id)?.opened;
    },
    { concurrency: 4 },
  );
  worker.on('error', (error) => errors.push(error));
  await until('four run', () => runs.length === 4);
  for (const job of [a, b]) gates.get(job?.id)?.open();
  await until('the first reply is held back', () => held.holding === 1);
  const asked = faulty.answered('locks');
  for (const job of [c, d]) gates.get(job?.id)?.open();
  await asked;
  expect(lost.struck).toBe(1);
  await until('the others are done', async () => (await queue.getCompletedCount()) === 6);
  held.release();
  await until('all are done', async () => (await queue.getCompletedCount()) === 8);
  expect(runs).toHaveLength(8);
  expect(new Set(runs)).toEqual(new Set([a, b, c, d, ...rest].map((job) => job?.id)));
  expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('drop')]);
  await worker.close();
});

test('waits for both calls on close', async () => {
  const watched = slow(memory, 20);
  const queue = newQueue(memory);
  await queue.addBulk(Array.from({ length: 20 }, (_, index) => ({ name: 'a', data: { index } })));
  const all = newGate();
  const worker = newWorker(watched.store, () => all.opened, { concurrency: 10 });
  await until('ten run', async () => (await queue.getActiveCount()) === 10);
  all.open();
  await until('two calls are in flight', () => watched.inFlight === 2);
  await worker.close();
  expect(watched.inFlight).toBe(0);
  expect(await queue.getActiveCount()).toBe(0);
  expect((await queue.getCompletedCount()) + (await queue.getWaitingCount())).toBe(20);
});

test('claims the next batch at once when the outcomes of a batch go in two calls', async () => {
  const silent = new FaultyStore(memory);
  silent.losesWakeUps = true;
  const watched = slow(silent, 3);
  const queue = newQueue(memory);
  await queue.addBulk(Array.from({ length: 60 }, (_, data) => ({ name: 'a', data })));
  const sizes: number[] = [];
  // Neither a wake-up nor drainDelay, which is longer than the patience of this test, makes the worker claim.
  const worker = new Worker('work', async ({ jobs }) => void sizes.push(jobs.length), {
    connection: watched.store,
    batch: { size: 10 },
    drainDelay: 600,
  });
  closing.push(() => worker.close());
  await until('all jobs are completed', async () => (await queue.getCompletedCount()) === 60);
  expect(watched.most).toBe(2);
  expect(sizes).toEqual(Array.from({ length: 6 }, () => 10));
});
