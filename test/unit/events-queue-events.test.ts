import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { type LockClient, holder } from './claimed-job.js';

const NAMES = [
  'active',
  'added',
  'cleaned',
  'completed',
  'delayed',
  'drained',
  'duplicated',
  'failed',
  'paused',
  'progress',
  'removed',
  'resumed',
  'retries-exhausted',
  'stalled',
  'waiting',
] as const;

let store: FaultyStore;
let queue: Queue;
let worker: LockClient;
const open: QueueEvents[] = [];

beforeEach(async () => {
  store = new FaultyStore(new MemoryStore());
  queue = new Queue('mail', { connection: store });
  worker = await holder(store, 'mail');
});
afterEach(async () => {
  store.clear();
  await Promise.all([queue.close(), ...open.splice(0).map((events) => events.close())]);
});

const refused = (code: string) => expect.objectContaining({ code });

interface Listening {
  events: QueueEvents;
  /** All that was told: name, arguments without the id. */
  told: [string, ...unknown[]][];
  ids: string[];
  /** Resolves when so many were told. */
  count(number: number): Promise<void>;
}

/** It never looks without a wake-up, unless told otherwise. */
function listen(opts: ConstructorParameters<typeof QueueEvents>[1] = {}): Listening {
  const events = new QueueEvents('mail', { connection: store, blockingTimeout: 600_000, ...opts });
  open.push(events);
  const told: Listening['told'] = [];
  const ids: string[] = [];
  let wake = (): void => {};
  for (const name of NAMES) {
    events.on(name, (...args: unknown[]) => {
      ids.push(args.pop() as string);
      told.push([name, ...args]);
      wake();
    });
  }
  const count = async (number: number): Promise<void> => {
    while (told.length < number) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { events, told, ids, count };
}

describe('events that QueueEvents emits', () => {
  test('cover the life of jobs, with the arguments of BullMQ', async () => {
    const { events, told, ids, count } = listen();
    await events.waitUntilReady();
    await queue.add('a', {}, { jobId: 'a' });
    await queue.add('a', {}, { jobId: 'a' });
    const before = Date.now();
    await queue.add('b', {}, { jobId: 'b', delay: 5_000 });
    await (await queue.getJob('b'))?.remove();
    const job = await worker.take();
    await job.updateProgress({ half: true });
    await job.moveToCompleted({ sent: 1 }, undefined, false);
    await queue.add('c', {}, { jobId: 'c' });
    await (await worker.take()).moveToFailed(new Error('broke'));
    await queue.pause();
    await queue.resume();
    await queue.clean(0, 0, 'failed');
    await count(19);
    expect(told).toEqual([
      ['added', { jobId: 'a', name: 'a' }],
      ['waiting', { jobId: 'a' }],
      ['duplicated', { jobId: 'a' }],
      ['added', { jobId: 'b', name: 'b' }],
      ['delayed', { jobId: 'b', delay: expect.any(Number) }],
      ['removed', { jobId: 'b', prev: 'delayed' }],
      ['active', { jobId: 'a', prev: 'waiting' }],
      ['progress', { jobId: 'a', data: { half: true } }],
      ['completed', { jobId: 'a', returnvalue: { sent: 1 }, prev: 'active' }],
      ['drained'],
      ['added', { jobId: 'c', name: 'c' }],
      ['waiting', { jobId: 'c' }],
      ['active', { jobId: 'c', prev: 'waiting' }],
      ['failed', { jobId: 'c', failedReason: 'broke', prev: 'active' }],
      ['retries-exhausted', { jobId: 'c', attemptsMade: 1 }],
      ['drained'],
      ['paused', {}],
      ['resumed', {}],
      ['cleaned', { count: '1' }],
    ]);
    const due = (told[4]?.[1] as { delay: number } | undefined)?.delay;
    expect(due).toBeGreaterThanOrEqual(before + 5_000);
    expect(due).toBeLessThan(before + 60_000);
    expect(ids.map(Number)).toEqual(ids.map((_, index) => index + 1));
  });

  test('skip one that cannot be read, and report it', async () => {
    const { events, told, count } = listen();
    const errors: Error[] = [];
    events.on('error', (error) => errors.push(error));
    await events.waitUntilReady();
    const { id } = await queue.add('a', {});
    await count(2);
    await store.write('mail', [{ jobId: id, kind: 'progress', progress: '{broken' }]);
    await queue.updateJobProgress(id, 2);
    await count(3);
    expect(told.at(-1)).toEqual(['progress', { jobId: id, data: 2 }]);
    expect(errors).toMatchObject([{ code: 'INVALID_PAYLOAD' }]);
  });

  test('reach other listeners when one throws, and report the error', async () => {
    const { events, count } = listen();
    const errors: Error[] = [];
    events.on('error', (error) => errors.push(error));
    events.on('added', () => {
      throw new Error('mine');
    });
    await events.waitUntilReady();
    await queue.add('a', {});
    await count(2);
    expect(errors).toMatchObject([{ message: 'mine' }]);
  });
});

describe('where a QueueEvents starts', () => {
  test('reads events from now on by default, once it is ready', async () => {
    await queue.add('before', {});
    const { events, told, count } = listen();
    await events.waitUntilReady();
    await queue.add('after', {}, { delay: 5 });
    await count(2);
    expect(told.map(([name]) => name)).toEqual(['added', 'delayed']);
  });

  test('reads from the beginning, or after a given id', async () => {
    await queue.addBulk(Array.from({ length: 700 }, () => ({ name: 'x' })));
    const all = listen({ lastEventId: '0' });
    await all.count(1400);
    expect(all.ids.map(Number)).toEqual(Array.from({ length: 1400 }, (_, index) => index + 1));
    await all.events.close();
    await queue.add('meanwhile', {});
    const later = listen({ lastEventId: all.ids.at(-1) as string });
    await later.count(2);
    expect(later.told[0]).toEqual(['added', { jobId: '701', name: 'meanwhile' }]);
    await listen({ lastEventId: '0-0' }).count(1);
  });

  test('reads from the end of the log when lastEventId is beyond it (a restored backup)', async () => {
    const { events, told, count } = listen({ lastEventId: '500' });
    const read = store.answered('events', 1);
    await events.waitUntilReady();
    await read;
    await queue.add('x', {});
    await count(2);
    expect(told.map(([name]) => name)).toEqual(['added', 'waiting']);
  });

  test('emits events since it was ready once it runs, with autorun false', async () => {
    const { events, told, count } = listen({ autorun: false });
    await events.waitUntilReady();
    await queue.add('x', {});
    expect(told).toEqual([]);
    const running = events.run();
    await count(2);
    await expect(events.run()).rejects.toThrow(refused('ALREADY_RUNNING'));
    await events.close();
    await running;
    await expect(events.run()).rejects.toThrow(refused('CLOSED'));
  });
});

describe('a QueueEvents whose store fails', () => {
  test('reports an outage once, and misses no event of it', async () => {
    const { events, told, count } = listen();
    const errors: Error[] = [];
    events.on('error', (error) => errors.push(error));
    await events.waitUntilReady();
    const rule = store.on('events', { fault: 'fail' });
    const reads = store.calls('events');
    await queue.add('x', {});
    await store.called('events', reads + 2);
    rule.remove();
    await count(2);
    expect(told.map(([name]) => name)).toEqual(['added', 'waiting']);
    expect(errors).toMatchObject([{ code: 'STORE_UNAVAILABLE' }]);
  });

  test('emits events late, but all of them, when a wake-up is lost', async () => {
    const { events, count } = listen({ blockingTimeout: 20 });
    await events.waitUntilReady();
    store.losesWakeUps = true;
    await queue.add('x', {});
    await count(2);
  });

  test('reports a store that cannot be opened once, and retries', async () => {
    const rule = store.on('open', { fault: 'fail' });
    const { events, count } = listen({ lastEventId: '0' });
    const errors: Error[] = [];
    events.on('error', (error) => errors.push(error));
    await store.called('open', 3);
    await expect(events.waitUntilReady()).rejects.toThrow(refused('STORE_UNAVAILABLE'));
    rule.remove();
    await queue.add('x', {});
    await count(2);
    expect(errors).toMatchObject([{ code: 'STORE_UNAVAILABLE' }]);
  });

  test('emits nothing after close, even when a read was in flight', async () => {
    const { events, told } = listen();
    await events.waitUntilReady();
    const rule = store.on('events', { fault: 'hold-reply' });
    const reads = store.calls('events');
    await queue.add('x', {});
    await store.called('events', reads + 1);
    await events.close();
    rule.remove();
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([]);
    await expect(events.waitUntilReady()).rejects.toThrow(refused('CLOSED'));
    expect(events.close()).toBe(events.closing);
  });

  test('reads many events in pages, each once', async () => {
    const { events, ids, count } = listen();
    await events.waitUntilReady();
    await Promise.all(Array.from({ length: 3000 }, () => queue.add('x', {})));
    await count(6000);
    expect(ids.map(Number)).toEqual(Array.from({ length: 6000 }, (_, index) => index + 1));
  });
});

describe('the constructor of QueueEvents', () => {
  test.each<[string, string, unknown]>([
    ['INVALID_QUEUE_NAME', '', {}],
    ['INVALID_OPTION', 'x', null],
    ['INVALID_CONNECTION', 'x', { connection: 5 }],
    ...[Number.NaN, 0, -1, 1.5, 1e300, '5', null, {}].map((blockingTimeout): [string, string, unknown] => [
      'INVALID_OPTION',
      'x',
      { connection: 'memory:', blockingTimeout },
    ]),
    ...[Number.NaN, -1, 5, '-1', '1.5', 'x', '', '1700000000000-5', '9'.repeat(20), null, {}].map(
      (lastEventId): [string, string, unknown] => ['INVALID_OPTION', 'x', { connection: 'memory:', lastEventId }],
    ),
    ...[1, 'true', null].map((autorun): [string, string, unknown] => ['INVALID_OPTION', 'x', { connection: 'memory:', autorun }]),
  ])('%s: new QueueEvents(%j, %j)', (code, name, opts) => {
    expect(() => new QueueEvents(name, opts as never)).toThrow(refused(code));
  });
});

test('reports how many events were dropped to a listener that is behind, but not to one that starts with the oldest', async () => {
  const errors: unknown[] = [];
  const late = listen({ autorun: false });
  late.events.on('error', (error) => errors.push(error));
  await late.events.waitUntilReady();
  await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'x', data: {} })));
  await queue.trimEvents(4);
  const running = late.events.run();
  await late.count(4);
  expect(errors).toEqual([
    expect.objectContaining({ code: 'EVENTS_MISSED', message: expect.stringContaining('missed 6 events') }),
  ]);
  const oldest = listen({ lastEventId: '0' });
  oldest.events.on('error', (error) => errors.push(error));
  await oldest.count(4);
  await queue.add('x', {});
  await Promise.all([late.count(6), oldest.count(6)]);
  expect(errors).toHaveLength(1);
  await late.events.close();
  await running;
});
