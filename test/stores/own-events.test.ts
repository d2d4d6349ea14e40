// Events of users (QueueEventsProducer), and the listeners of a queue, as users of BullMQ know them, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents, type QueueEventsOptions } from '../../src/events/queue-events.js';
import { QueueEventsProducer } from '../../src/events/queue-events-producer.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

type Own = Record<string, (args: unknown, id: string) => void>;

const VALUES = {
  text: 'ä 😀 "quoted" \\ \n',
  number: 5,
  zero: 0,
  nested: { list: [1, null, true] },
  empty: '',
};

describe.each(ENGINES)('own events on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const producer = kept(new QueueEventsProducer(name, { connection }));
    const listen = async (options: QueueEventsOptions = {}): Promise<QueueEvents> => {
      const events = kept(new QueueEvents(name, { connection, ...options }));
      await events.waitUntilReady();
      return events;
    };
    return { connection, name, queue, producer, listen };
  }

  test('reach every listener of the queue in their order, with values of the same type', async () => {
    const { producer, listen } = await start();
    const seen: [string, unknown][] = [];
    for (const listener of ['one', 'two']) {
      (await listen()).on<Own>('example', (args, id) => seen.push([listener, { args, id: /^\d+$/.test(id) }]));
    }
    await producer.publishEvent({ eventName: 'example', ...VALUES });
    await producer.publishEvent({ eventName: 'example' });
    await until('all events', () => seen.length === 4);
    for (const listener of ['one', 'two']) {
      const own = seen.filter(([who]) => who === listener).map(([, what]) => what);
      expect(own).toEqual([
        { args: VALUES, id: true },
        { args: {}, id: true },
      ]);
    }
  });

  test('are emitted as `<event>:<jobId>` too if they have a jobId', async () => {
    const { producer, listen } = await start();
    const events = await listen();
    const seen: unknown[] = [];
    for (const name of ['example', 'example:7', 'example:8', 'example:x'])
      events.on<Own>(name, (args) => seen.push([name, (args as { n: number }).n]));
    await producer.publishEvent({ eventName: 'example', jobId: '7', n: 1 });
    await producer.publishEvent({ eventName: 'example', jobId: 8, n: 2 });
    await producer.publishEvent({ eventName: 'example', jobId: { x: 1 }, n: 3 });
    await producer.publishEvent({ eventName: 'example', n: 4 });
    await until('the last event', () => seen.length === 6);
    expect(seen).toEqual([
      ['example', 1],
      ['example:7', 1],
      ['example', 2],
      ['example:8', 2],
      ['example', 3],
      ['example', 4],
    ]);
  });

  test('are replayed from lastEventId on, in the order of all events of the queue', async () => {
    const { queue, producer, listen } = await start();
    await queue.add('x', {}, { jobId: 'before' });
    await producer.publishEvent({ eventName: 'example', n: 1 });
    await queue.add('x', {}, { jobId: 'between' });
    await producer.publishEvent({ eventName: 'example', n: 2 });
    const replay = async (lastEventId: string, count: number) => {
      const seen: { what: string; id: string }[] = [];
      const events = await listen({ lastEventId, autorun: false });
      events.on<Own>('example', (args, id) => seen.push({ what: `example ${(args as { n: number }).n}`, id }));
      events.on('added', ({ jobId }, id) => seen.push({ what: jobId, id }));
      void events.run();
      await until('all events', () => seen.length === count);
      return seen;
    };
    const all = await replay('0', 4);
    expect(all.map(({ what }) => what)).toEqual(['before', 'example 1', 'between', 'example 2']);
    const later = await replay(all[1]?.id ?? '', 2);
    expect(later.map(({ what }) => what)).toEqual(['between', 'example 2']);
  });

  test('leave the older events of the queue alone, unless maxEvents is given', async () => {
    const { connection, name, queue, producer } = await start();
    await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'x', data: {} })));
    const logged = async () => (await connection.events(name, 0, 10_000)).events;
    const before = (await logged()).length;
    await producer.publishEvent({ eventName: 'example' });
    expect(await logged()).toHaveLength(before + 1);
    await producer.publishEvent({ eventName: 'example', n: 2 }, 5);
    const rest = await logged();
    expect(rest.at(-1)).toMatchObject({ name: 'example', args: '{"n":2}' });
    expect(rest.length).toBeLessThan(before);
  });

  test('are refused under names that Holdfast emits itself, too large, or unreadable, and nothing is written', async () => {
    const { connection, name, producer } = await start();
    const publish = (event: unknown, max?: unknown) => producer.publishEvent(event as { eventName: string }, max as number);
    const reserved = ['completed', 'waiting', 'waiting-children', 'error', 'recovered', 'drained', 'newListener'];
    const names: unknown[] = [
      ...reserved,
      'completed:5',
      'failed:',
      '',
      5,
      null,
      undefined,
      {},
      'x'.repeat(201),
      'a\0b',
      '\ud800',
    ];
    for (const eventName of names)
      await expect(publish({ eventName })).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'eventName' });
    for (const event of [null, undefined, 'example', 5])
      await expect(publish(event)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'event' });
    for (const max of [0, -1, 1.5, Number.NaN, '5', null])
      await expect(publish({ eventName: 'x' }, max)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'maxEvents' });
    await expect(publish({ eventName: 'x', n: 5n })).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
    const tooLarge = { code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('event "x"') as string };
    await expect(publish({ eventName: 'x', text: 'ä'.repeat(40_000) })).rejects.toMatchObject(tooLarge);
    expect((await connection.events(name, 0, 100)).events).toEqual([]);
    await publish({ eventName: 'x'.repeat(200), text: 'a'.repeat(65_000) });
    await publish({ eventName: 'completed-by-hand' });
    expect((await connection.events(name, 0, 100)).events).toHaveLength(2);
  });

  test('cannot be published by a producer that was closed', async () => {
    const { producer } = await start();
    await producer.waitUntilReady();
    await producer.close();
    await producer.close();
    await expect(producer.publishEvent({ eventName: 'x' })).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('getQueueEvents lists listeners that ask for it until they close, and getWorkers lists no listener', async () => {
    const { connection, name, queue, listen } = await start();
    const listed = await listen({ listed: true });
    await listen();
    // Other sessions without slots are no listeners.
    const held = await queue.takeLock('resource');
    const worker = kept(new Worker(name, async () => 1, { connection, name: 'w' }));
    await worker.waitUntilReady();
    const found = await queue.getQueueEvents();
    const client = `bull:${Buffer.from(name).toString('base64')}`;
    expect(found).toEqual([expect.objectContaining({ name, rawname: `${client}:qe`, pid: String(process.pid), age: '0' })]);
    for (const value of Object.values(found[0] ?? {})) expect(typeof value).toBe('string');
    await until('the worker', async () => (await queue.getWorkersCount()) === 1);
    expect((await queue.getWorkers())[0]?.rawname).toBe(`${client}:w:w`);
    await worker.pause();
    await listed.close();
    expect(await queue.getQueueEvents()).toEqual([]);
    await held?.release();
  });
});

test('a listed QueueEvents is listed again after the store has ended its session, on every store', async () => {
  // It learns that from its next renewal, ten seconds later: all stores wait for it at the same time.
  const again = ENGINES.map(async (engine) => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const events = kept(new QueueEvents(name, { connection, listed: true }));
    await events.waitUntilReady();
    const [first] = await queue.getQueueEvents();
    await connection.closeSessions([{ queue: name, id: first?.id ?? '' }], 'closed');
    expect(await queue.getQueueEvents()).toEqual([]);
    const second = await until(`the new session on ${engine}`, async () => (await queue.getQueueEvents())[0]?.id, 30_000);
    expect(second).not.toBe(first?.id);
  });
  await Promise.all(again);
});

describe('the option listed of QueueEvents', () => {
  test.each([null, 'yes', 1])('refuses %j', (listed) => {
    const refused = { code: 'INVALID_OPTION', option: 'listed' };
    expect(() => new QueueEvents('q', { connection: 'memory:', listed } as never)).toThrow(expect.objectContaining(refused));
  });
});
