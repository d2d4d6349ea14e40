// `prefix` on queues, workers, listeners and leaders, on every store: environments that share a store have nothing in common.
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue as BullQueue } from '../../src/compat/bull/queue.js';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Leader } from '../../src/lock/leader.js';
import { Queue } from '../../src/queue/queue.js';
import { tagOf } from '../../src/store/redis/driver/runner.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

describe.each(ENGINES)('prefix on %s', (engine: Engine) => {
  test('S7-7 separates queues of one name and different prefixes', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const staging = kept(new Queue(name, { connection, prefix: 'staging:{eu}' }));
    const live = kept(new Queue(name, { connection, prefix: 'live' }));
    const plain = kept(new Queue(name, { connection }));
    const queues = [staging, live, plain];
    const ids = await Promise.all(queues.map(async (queue) => (await queue.add('job', { of: queue.opts.prefix })).id));
    expect(ids).toEqual(['1', '1', '1']);
    await live.pause();
    await live.setGlobalConcurrency(7);
    expect(await Promise.all(queues.map((queue) => queue.isPaused()))).toEqual([false, true, false]);
    expect(await Promise.all(queues.map((queue) => queue.getGlobalConcurrency()))).toEqual([null, 7, null]);
    expect(await staging.takeLock('one')).toBeDefined();
    expect(await live.takeLock('one')).toBeDefined();
    expect((await staging.getInstances()).length + (await plain.getInstances()).length).toBe(1);
    await staging.drain();
    expect(await Promise.all(queues.map((queue) => queue.count()))).toEqual([0, 1, 1]);
    await live.obliterate();
    expect((await plain.getJob('1'))?.data).toEqual({ of: 'bull' });
  });

  test('shows a worker, listener and leader the jobs of their prefix only', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const prefix = '{app}';
    const [queue, other] = [kept(new Queue(name, { connection, prefix })), kept(new Queue(name, { connection }))];
    const events = kept(new QueueEvents(name, { connection, prefix }));
    await events.waitUntilReady();
    await other.add('not mine', {});
    const added = await queue.add('mine', { n: 1 });
    const worker = kept(new Worker(name, async (job) => [job.queueName, job.prefix, job.data.n], { connection, prefix }));
    expect(await added.waitUntilFinished(events)).toEqual([name, prefix, 1]);
    expect(await queue.getJobCounts('completed', 'waiting')).toMatchObject({ completed: 1, waiting: 0 });
    expect(await other.getJobCounts('completed', 'waiting')).toMatchObject({ completed: 0, waiting: 1 });
    const leaders = [kept(new Leader(name, { connection, prefix })), kept(new Leader(name, { connection }))];
    await Promise.all(leaders.map(async (leader) => leader.isLeader || once(leader, 'leader')));
    expect(leaders.map((leader) => leader.isLeader)).toEqual([true, true]);
    expect([queue.qualifiedName, worker.qualifiedName, events.qualifiedName]).toEqual(Array(3).fill(`${prefix}:${name}`));
  });
});

test('shows names and keys as BullMQ does, with no prefix as the default one', async () => {
  const connection = 'memory:prefix';
  const queue = kept(new Queue('mail', { connection }));
  expect([queue.qualifiedName, queue.toKey('wait'), queue.opts.prefix]).toEqual(['bull:mail', 'bull:mail:wait', 'bull']);
  const job = await queue.add('x', {});
  expect([job.queueName, job.prefix, job.queueQualifiedName]).toEqual(['mail', 'bull', 'bull:mail']);
  const named = kept(new Queue('mail', { connection, prefix: 'bull' }));
  expect((await named.getJob(job.id))?.name).toBe('x');
});

test('shows the Bull entry and the core one queue under one prefix', async () => {
  const connection = 'memory:prefix';
  const bull = kept(new BullQueue('orders', { connection, prefix: 'live:1' }));
  const core = kept(new Queue('orders', { connection, prefix: 'live:1' }));
  const { id } = await bull.add({ n: 1 });
  expect((await core.getJob(id))?.data).toEqual({ n: 1 });
});

test('makes waitUntilFinished refuse a listener of another prefix', async () => {
  const connection = 'memory:prefix';
  const job = await kept(new Queue('bills', { connection, prefix: 'a' })).add('x', {});
  const events = kept(new QueueEvents('bills', { connection, prefix: 'b' }));
  await expect(job.waitUntilFinished(events)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'queueEvents' });
});

test.each([5, 'a\nb', '\ud800', 'a'.repeat(201)])('the prefix %j is refused', (prefix) => {
  const opts = { connection: 'memory:prefix', prefix: prefix as string };
  const refusal = expect.objectContaining({ code: 'INVALID_OPTION', option: 'prefix' });
  expect(() => new Queue('q', opts)).toThrow(refusal);
  expect(() => new Worker('q', null, opts)).toThrow(refusal);
  expect(() => new QueueEvents('q', opts)).toThrow(refusal);
  expect(() => new Leader('q', opts)).toThrow(refusal);
});

test('on Redis, prefixes with the same {…} share a slot, and no two queues share a key', () => {
  const tags = ['%7Bapp%7D/a', '%7Bapp%7D/b', 'x%3A%7Bapp%7D/a', 'app', 'app/a', '%7Bother%7D/a'].map((queue) =>
    tagOf('holdfast', queue),
  );
  expect(new Set(tags).size).toBe(tags.length);
  const slotTags = tags.map((tag) => /\{([^}]*)\}/.exec(tag)?.[1]);
  expect(slotTags).toEqual(['holdfast:app', 'holdfast:app', 'holdfast:app', 'holdfast:app', 'holdfast:app/a', 'holdfast:other']);
});
