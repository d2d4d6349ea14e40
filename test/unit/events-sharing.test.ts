// Many QueueEvents of one queue in one process cost the store as much as one: they share a watch, the looks without a wake-up, and the reads.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { QueueEvents, type QueueEventsOptions } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { until } from '../support/wait/until.js';
import { type LockClient, holder } from './claimed-job.js';

const MANY = 1000;

class CountedStore extends FaultyStore {
  watched = 0;

  override watch(...args: Parameters<FaultyStore['watch']>): () => void {
    if (args[2] !== 'events') return super.watch(...args);
    this.watched += 1;
    const unwatch = super.watch(...args);
    return () => {
      this.watched -= 1;
      unwatch();
    };
  }
}

let store: CountedStore;
let queue: Queue;
let worker: LockClient;
let listeners: QueueEvents[];

beforeEach(async () => {
  store = new CountedStore(new MemoryStore());
  queue = new Queue('mail', { connection: store });
  worker = await holder(store, 'mail');
  listeners = [];
});

afterEach(async () => {
  store.clear();
  await Promise.all([queue.close(), ...listeners.map((events) => events.close())]);
});

function listen(count: number, options: QueueEventsOptions = {}): { events: QueueEvents[]; told: string[][]; errors: Error[][] } {
  const told: string[][] = [];
  const errors: Error[][] = [];
  const events = Array.from({ length: count }, (_, n) => {
    const one = new QueueEvents('mail', { connection: store, blockingTimeout: 600_000, ...options });
    const [ids, failures] = [(told[n] = []), (errors[n] = [])] as [string[], Error[]];
    one.on('added', ({ jobId }) => ids.push(jobId));
    one.on('error', (error) => failures.push(error));
    return one;
  });
  listeners.push(...events);
  return { events, told, errors };
}

/** How often the log is read meanwhile. */
async function reads(work: () => Promise<unknown>): Promise<number> {
  const before = store.calls('events');
  await work();
  return store.calls('events') - before;
}

test('serves a thousand QueueEvents that start now with a handful of reads', async () => {
  const { events, told } = listen(MANY);
  const fixing = await reads(() => Promise.all(events.map((one) => one.waitUntilReady())));
  expect(fixing).toBeLessThan(10);
  expect(store.watched).toBe(1);
  for (const id of ['a', 'b', 'c']) {
    const reading = await reads(async () => {
      await queue.add('job', {}, { jobId: id });
      await until('all to be told', () => told.every((ids) => ids.at(-1) === id));
    });
    expect(reading).toBeLessThan(10);
  }
  expect(told).toEqual(Array.from({ length: MANY }, () => ['a', 'b', 'c']));
});

test('lets QueueEvents that poll without a wake-up share one read', async () => {
  const { events, told } = listen(MANY, { blockingTimeout: 100 });
  await Promise.all(events.map((one) => one.waitUntilReady()));
  store.losesWakeUps = true;
  const looking = await reads(async () => {
    await queue.add('job', {}, { jobId: 'a' });
    await until('all to be told', () => told.every((ids) => ids.length === 1));
    // By then all have looked again, and more than once.
    const soFar = store.calls('events');
    await until('three more looks', () => store.calls('events') >= soFar + 3);
  });
  expect(looking).toBeLessThan(30);
});

test('lets a QueueEvents that was away read what it missed alone, then share reads again', async () => {
  const { events } = listen(20);
  await Promise.all(events.map((one) => one.waitUntilReady()));
  await queue.add('job', {}, { jobId: 'missed' });
  const late = listen(5, { lastEventId: '0' });
  await until('the late ones to be told', () => late.told.every((ids) => ids.length === 1));
  const reading = await reads(async () => {
    await queue.add('job', {}, { jobId: 'next' });
    await until('all to be told', () => late.told.every((ids) => ids.join() === 'missed,next'));
  });
  expect(reading).toBeLessThan(6);
  expect(store.watched).toBe(1);
});

test('reports an outage once to each QueueEvents, and misses nothing, with few reads', async () => {
  const { events, told, errors } = listen(100);
  await Promise.all(events.map((one) => one.waitUntilReady()));
  const failure = new HoldfastError('STORE_UNAVAILABLE', 'gone', { retryable: true });
  const rule = store.on('events', { fault: 'fail', error: failure });
  const reading = await reads(async () => {
    await queue.add('job', {}, { jobId: 'a' });
    await until('some tries', () => rule.struck >= 4);
    rule.remove();
    await until('all to be told', () => told.every((ids) => ids.length === 1));
  });
  expect(errors).toEqual(Array.from({ length: 100 }, () => [failure]));
  expect(reading).toBeLessThan(20);
});

test('stops events for a closed QueueEvents only, and ends the watch with the last one', async () => {
  const { events, told } = listen(3);
  await Promise.all(events.map((one) => one.waitUntilReady()));
  await events[0]?.close();
  await queue.add('job', {}, { jobId: 'a' });
  await until('the others to be told', () => told[1]?.length === 1 && told[2]?.length === 1);
  expect(told[0]).toEqual([]);
  await Promise.all(events.map((one) => one.close()));
  expect(store.watched).toBe(0);
  const again = listen(2);
  await Promise.all(again.events.map((one) => one.waitUntilReady()));
  await queue.add('job', {}, { jobId: 'b' });
  await until('the new ones to be told', () => again.told.every((ids) => ids.join() === 'b'));
});

test('fetches a large result once for all QueueEvents', async () => {
  const { events } = listen(50);
  const results: unknown[] = [];
  for (const one of events) one.on('completed', ({ returnvalue }) => results.push(returnvalue));
  await Promise.all(events.map((one) => one.waitUntilReady()));
  await queue.add('job', {}, { jobId: 'a' });
  const result = 'x'.repeat(10_000);
  const job = await worker.take();
  const before = store.calls('jobs');
  await job.moveToCompleted(result, job.token, false);
  await until('all to be told', () => results.length === 50);
  expect(new Set(results)).toEqual(new Set([result]));
  expect(store.calls('jobs') - before).toBeLessThan(5);
});

test('fetches the large results of many jobs in one call', async () => {
  const { events } = listen(1);
  const [listener] = events as [QueueEvents];
  const results: unknown[] = [];
  listener.on('completed', ({ returnvalue }) => results.push(returnvalue));
  await listener.waitUntilReady();
  const held = store.on('events', { fault: 'hang' });
  const expected = Array.from({ length: 60 }, (_, n) => String(n % 10).repeat(10_000));
  for (const result of expected) {
    await queue.add('job', {});
    await (await worker.take()).moveToCompleted(result, undefined, false);
  }
  const before = store.calls('jobs');
  held.release();
  await until('all to be told', () => results.length === expected.length);
  expect(results).toEqual(expected);
  expect(store.calls('jobs') - before).toBeLessThan(10);
});

test('reads the log once for many waitUntilFinished of missing jobs, and then only what is new', async () => {
  const { events } = listen(1);
  const [listener] = events as [QueueEvents];
  await listener.waitUntilReady();
  const finish = async (jobId: string) => {
    const job = await queue.add('job', {}, { jobId, removeOnComplete: true });
    await (await worker.take()).moveToCompleted(`result of ${jobId}`, undefined, false);
    return job;
  };
  const gone = [await finish('a'), await finish('b')];
  for (let n = 0; n < 3; n += 1) await queue.addBulk(Array.from({ length: 1000 }, () => ({ name: 'filler', data: {} })));
  const wait = async () => {
    const waiting = Array.from({ length: 100 }, () => gone.map((job) => job.waitUntilFinished(listener))).flat();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['result of a', 'result of b']));
  };
  // 6,000 events in pages of 500; the listener reads them too.
  expect(await reads(wait)).toBeLessThan(40);
  await queue.add('filler', {});
  expect(await reads(wait)).toBeLessThan(10);
});
