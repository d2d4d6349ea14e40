// Most adds take a fast path (`plain-add` in lua/add.lua).
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import { add as addJobs } from '../../../src/store/redis/add.js';
import type { Argument } from '../../../src/store/redis/driver/driver.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import type { Engine } from '../../../src/store/redis/driver/engine.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { goBothWays, TAG } from './both-ways.js';
import { newJob, openWithClient } from './support.js';

let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  seq = 0;
});

async function takes(
  way: 'short' | 'long',
  jobs: Partial<NewJob>[],
  call: { caller?: string; seq?: number } = {},
): Promise<void> {
  let sent: Argument[] = [];
  const run = async (_name: string, _queue: string, args: Argument[]): Promise<string> => {
    sent = args;
    return '1,1';
  };
  const engine = { run, registry: { ensure: () => undefined }, wake: { sent: () => undefined } } as unknown as Engine;
  await addJobs(engine, 'q', jobs.map(newJob), { caller: 'p', seq: ++seq, ...call });
  expect(await goBothWays(client, 'add', 'plain-add', sent)).toBe(way);
}

const many = (count: number): Partial<NewJob>[] => Array.from({ length: count }, (_, n) => ({ name: `job ${n}`, data: `${n}` }));

describe('the fast path to add on Redis does what the slow path does', () => {
  test('for one job, the first and the next, and for many', async () => {
    await takes('short', many(1));
    await takes('short', many(1));
    await takes('short', many(7));
    await takes('short', many(1000));
  });

  test('for each producer', async () => {
    await takes('short', many(1), { caller: 'one', seq: 5 });
    await takes('short', many(1), { caller: 'other', seq: 1 });
  });

  test('with a watcher, and in a paused queue', async () => {
    await client.eval(script('watch').text, 1, TAG, 'events');
    await takes('short', many(1));
    await client.eval(script('watch').text, 1, TAG, 'jobs');
    await takes('short', many(2));
    await store.configure('q', { paused: true });
    await takes('short', many(1));
  });
});

describe('the fast path to add on Redis is not used', () => {
  test.each<[string, Partial<NewJob>]>([
    ['an id', { id: 'mine' }],
    ['a priority', { priority: 1 }],
    ['a delay', { delayMs: 60_000 }],
    ['lifo', { lifo: true }],
    ['a lock key', { lockKey: 'k' }],
  ])('for a job with %s, alone or among others', async (_, job) => {
    await takes('long', [job]);
    await takes('long', [{}, job, {}]);
  });

  test('when a job of the user has the next id', async () => {
    await store.add('q', [newJob({ id: '1' })], { caller: 'u', seq: 1 });
    await takes('long', many(1));
    await takes('long', many(2));
    await store.add('q', [newJob({ id: '2' })], { caller: 'u', seq: 2 });
    await takes('long', many(2));
  });

  test('for a repeated call, a call with an old number, and more jobs than fit', async () => {
    await store.add('q', [newJob()], { caller: 'p', seq: 8 });
    await takes('long', many(1), { seq: 8 });
    await takes('long', many(1), { seq: 7 });
    await takes('long', many(1001), { seq: 9 });
  });
});
