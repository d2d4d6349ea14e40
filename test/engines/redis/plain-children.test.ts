// A settle on Redis that completes children tells their parents in its own step, if it can reach them (`plain-settle` in lua/settle.lua and
// `plain-settle` in lua/settle.lua). What it cannot do so becomes a message, as on the general path. Both paths must end with the same
// families.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { SettleReply } from '../../../src/store/contract/index.js';
import type { Argument } from '../../../src/store/redis/driver/driver.js';
import { type Runner, tagOf } from '../../../src/store/redis/driver/runner.js';
import { settle } from '../../../src/store/redis/settle.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import type { Engine } from '../../../src/store/redis/driver/engine.js';
import { completed, retryFrom } from '../../../src/testing/conformance/samples.js';
import { seedOfTest } from '../../support/run/seed.js';
import { Family } from './family-support.js';
import { goBothWays, TAG } from './both-ways.js';
import { newJob, newSession, openWithClient } from './support.js';

const NEAR = ['kids', 'parents', tagOf('holdfast', 'parents'), 'kids', tagOf('holdfast', 'kids')];
let store: RedisStore;
let client: Redis;
let family: Family;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  family = await new Family(store, client).open();
  seq = 10_000;
});

interface Step {
  near?: string[];
  at?: number;
  count?: number;
}

/** Completes children and claims, as a process that ends right after the script. */
async function settleAndDie(jobs: ClaimedJob[], { near = NEAR, at = ++seq, count = 1 }: Step = {}): Promise<SettleReply> {
  const relays = { after: async () => undefined, writeNear: (args: Argument[]) => args.push(...near) };
  const run: Runner = (name, queue, args) => family.run(name, queue, ...args);
  const engine = { run, relays } as unknown as Engine;
  const outcomes = jobs.map((job) => completed(job, {}, `"of ${job.id}"`));
  return settle(engine, 'kids', outcomes, { caller: 's-kids', seq: at }, { session: 's-kids', seq: at, count });
}

async function claim(count: number): Promise<ClaimedJob[]> {
  return (await store.claim('kids', { session: 's-kids', seq: ++seq, count })).jobs;
}

const counts = (pending: number, processed: number): string => `${pending} pending, ${processed} processed, 0 failed, 0 ignored`;

describe('a settle on Redis that completes children', () => {
  test('notifies their parent in its own step, and claims the next child', async () => {
    await family.addAll('a', 'b', 'c', 'd');
    const { results, claimed } = await settleAndDie(await claim(2));
    expect(results).toEqual(['done', 'done']);
    expect(claimed?.jobs).toMatchObject([{ id: 'c', parents: [{ queue: 'parents', id: 'parent' }] }]);
    expect(claimed?.undone).toBeUndefined();
    expect([await family.counts(), await family.messages()]).toEqual([counts(2, 2), []]);
    const { links } = await store.children('parents', 'parent', { states: ['processed'], limit: 10 });
    expect(links.map(({ child, text }) => [child.id, text])).toEqual([
      ['a', '"of a"'],
      ['b', '"of b"'],
    ]);
  });

  test('sends messages when it does not know the queue of the parent (negative control)', async () => {
    await family.addAll('a', 'b', 'c');
    await settleAndDie(await claim(1), { near: [] });
    expect([await family.counts(), (await family.messages()).length]).toEqual([counts(3, 0), 2]);
    await settleAndDie(await claim(1));
    // Messages that wait come first.
    expect([await family.counts(), (await family.messages()).length]).toEqual([counts(3, 0), 4]);
    await family.relay();
    expect(await family.counts()).toBe(counts(1, 2));
  });

  test('leaves the end of the last child as a message, which another process delivers', async () => {
    await family.addAll('a', 'b');
    await settleAndDie(await claim(2));
    expect([await family.counts(), (await family.messages()).length]).toEqual([counts(1, 1), 2]);
    expect(await family.state()).toBe('waiting-children');
    expect((await store.probe('kids')).undone).toBe(true);
    await family.relay();
    expect([await family.counts(), await family.state(), await family.releases()]).toEqual([counts(0, 2), 'waiting', 1]);
  });

  test('notifies the parent once when the call is repeated', async () => {
    await family.addAll('a', 'b', 'c');
    const jobs = await claim(1);
    const first = await settleAndDie(jobs, { at: ++seq });
    const again = await settleAndDie(jobs, { at: seq });
    expect(again.claimed?.jobs.map(({ id }) => id)).toEqual(first.claimed?.jobs.map(({ id }) => id));
    expect([again.results, await family.counts(), await family.messages()]).toEqual([['done'], counts(2, 1), []]);
  });

  test('notifies no parent when the worker has lost the lock of one of them', async () => {
    await family.addAll('a', 'b', 'c');
    const [late, other] = (await claim(2)) as [ClaimedJob, ClaimedJob];
    await store.settle('kids', [{ kind: 'release', jobId: late.id, token: late.token }]);
    await store.openSession(newSession({ queue: 'kids', id: 'new' }));
    await store.claim('kids', { session: 'new', seq: 1, count: 1, jobIds: [late.id] });
    const { results } = await settleAndDie([late, other]);
    expect(results).toEqual(['lost', 'done']);
    await family.relay();
    expect(await family.counts()).toBe(counts(2, 1));
    expect((await store.children('parents', 'parent', { states: ['processed'], limit: 10 })).links).toMatchObject([
      { child: { id: 'b' } },
    ]);
  });

  test('does not touch the queue of a parent that has a newer layout', async () => {
    await family.addAll('a', 'b', 'c');
    const meta = await client.getBuffer('{holdfast:parents}:meta');
    const newer = Buffer.from(meta ?? '');
    newer.writeDoubleLE(7, 8 * 25);
    await client.set('{holdfast:parents}:meta', newer);
    const before = await client.hgetall('{holdfast:parents}:links:parent');
    expect((await settleAndDie(await claim(1))).results).toEqual(['done']);
    expect(await client.hgetall('{holdfast:parents}:links:parent')).toEqual(before);
    await client.set('{holdfast:parents}:meta', meta ?? '');
    await family.relay();
    expect(await family.counts()).toBe(counts(2, 1));
  });

  test('notifies a parent of a child that ran before', async () => {
    await family.addAll('a', 'b', 'c');
    await settleAndDie(await claim(1), { count: 1 });
    await store.change('kids', ['a'], retryFrom('completed'));
    await family.relay();
    expect(await family.counts()).toBe(counts(3, 0));
    const again = await store.claim('kids', { session: 's-kids', seq: ++seq, count: 1, jobIds: ['a'] });
    await settleAndDie(again.jobs);
    await family.relay();
    expect(await family.counts()).toBe(counts(2, 1));
  });

  test.each([
    ['an earlier link of the same jobs', 'p,other,0\0'],
    ['a link that has ended', 'd,bond,1\0"before"'],
  ])('does not change %s', async (_, link) => {
    await family.addAll('a', 'b', 'c');
    await client.hset('{holdfast:parents}:links:parent', 'kids\na', link);
    await settleAndDie(await claim(2));
    await family.relay();
    expect(await client.hget('{holdfast:parents}:links:parent', 'kids\na')).toBe(link);
    expect(await family.counts()).toBe(counts(2, 1));
  });

  test('refuses the end of a child that has pending children itself', async () => {
    await family.addAll('a', 'b');
    const jobs = await claim(2);
    await family.add({ id: 'grandchild', parents: [{ queue: 'kids', id: 'a' }] });
    await family.relay();
    expect((await settleAndDie(jobs)).results).toEqual(['pending', 'done']);
    await family.relay();
    expect(await family.counts()).toBe(counts(1, 1));
  });

  test('notifies a parent in the same queue', async () => {
    const child = (id: string): Partial<NewJob> => ({ id, parents: [{ queue: 'kids', id: 'root' }] });
    const jobs = [{ id: 'root', waitsForChildren: true }, child('a'), child('b')].map(newJob);
    await store.add('kids', jobs, { caller: 'p', seq: ++seq });
    await settleAndDie(await claim(1), { count: 1 });
    const { counts: own } = await store.children('kids', 'root', { states: [], limit: 1 });
    expect([own.pending, own.processed]).toEqual([1, 1]);
  });
});

test('a store on Redis notifies parents in the step of the settle after the first message to their queue', async () => {
  await family.addAll(...Array.from({ length: 20 }, (_, n) => `kid-${n}`));
  let jobs = await claim(2);
  const scripts: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const before = await calls();
    const at = ++seq;
    const outcomes = jobs.map((job) => completed(job));
    const reply = await store.settle('kids', outcomes, { caller: 's-kids', seq: at }, { session: 's-kids', seq: at, count: 2 });
    jobs = reply.claimed?.jobs ?? [];
    scripts.push((await calls()) - before);
  }
  expect(scripts.slice(1)).toEqual([1, 1, 1, 1]);
  expect(await family.counts()).toBe(counts(10, 10));
});

async function calls(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]);
}

test('random families on Redis end alike on the fast path and on the general path', async () => {
  const seed = seedOfTest();
  const ends = [];
  for (const near of [NEAR, []]) {
    await client.flushall();
    await family.open();
    ends.push(await playFamilies(randomFrom(seed), near));
  }
  expect(ends[0]).toEqual(ends[1]);
});

function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Completes random families in random batches. Returns their links and the states of their jobs. */
async function playFamilies(random: (below: number) => number, near: string[]): Promise<unknown> {
  const parents = Array.from({ length: 6 }, (_, n) => ({ queue: n % 3 === 0 ? 'kids' : 'parents', id: `p${n}` }));
  const jobs: Partial<NewJob>[] = parents.map(({ queue, id }) => ({ queue, id, waitsForChildren: true }));
  for (let n = 0; n < 40; n += 1) {
    const own = parents.filter(() => random(4) === 0);
    const other = random(8) === 0 ? { deadLetter: 'dead' } : {};
    jobs.push({ id: `k${n}`, queue: 'kids', ...(own.length > 0 && { parents: own }), ...other });
  }
  await store.add('parents', jobs.map(newJob), { caller: 'r', seq: ++seq });
  await family.relay();
  for (let running = await claim(1 + random(5)); running.length > 0; ) {
    const { results, claimed } = await settleAndDie(running, { near, count: 1 + random(5) });
    expect(new Set(results)).toEqual(new Set(['done']));
    if (random(3) > 0) await family.relay();
    running = claimed?.jobs ?? [];
    if (running.length === 0) {
      await family.relay();
      running = await claim(5);
    }
  }
  const ends = [];
  for (const { queue, id } of parents) {
    const { counts: own, links } = await store.children(queue, id, { states: ['processed', 'pending'], limit: 100 });
    ends.push([id, own, links, await family.state(id, queue)]);
  }
  return [ends, (await store.status('kids')).counts, await family.messages()];
}

describe('the fast path to claim on Redis does what the slow path does', () => {
  test.each([
    ['children and jobs without a family', 'short', {}],
    ['a child with a dead letter queue', 'long', { deadLetter: 'dead' }],
  ])('for %s', async (_, way, other) => {
    await store.openSession(newSession());
    const parents = [{ queue: 'q', id: 'root' }];
    const jobs = [{ id: 'root', waitsForChildren: true }, { id: 'a', parents, ...other }, { id: 'plain' }, { id: 'b', parents }];
    await store.add('q', jobs.map(newJob), { caller: 'p', seq: 1 });
    const args = ['', '', '', 1, 's', ++seq, '', 3, '', '', 0];
    expect(await goBothWays(client, 'settle', 'plain-settle', args)).toBe(way);
    expect(await client.hlen(`${TAG}:extra`)).toBe(3);
  });

  test.each(['owing', 'outbox', 'resting'])(
    'leaves the call to the general script when the key %s exists in a queue with families',
    async (key) => {
      await store.openSession(newSession());
      await store.add('q', [newJob({ id: 'root', waitsForChildren: true }), newJob()], { caller: 'p', seq: 1 });
      await client.zadd(`${TAG}:${key}`, 1e16, 'x');
      expect(await goBothWays(client, 'settle', 'plain-settle', ['', '', '', 1, 's', ++seq, '', 3, '', '', 0])).toBe('long');
    },
  );
});

describe('the fast path to deliver on Redis does what the slow path does', () => {
  const root = { id: 'root', waitsForChildren: true };

  test.each([
    ['a child that is not the last one', 'short', root, 1],
    ['the last child of a parent', 'short', root, 2],
    ['the last child of a parent with a priority', 'long', { ...root, priority: 5 }, 2],
    ['the last child of a parent with a delay', 'long', { ...root, delayMs: 1_000 }, 2],
    ['the last child of a parent in a group', 'long', { ...root, group: 'g' }, 2],
    ['the last child of a parent with a lock key', 'long', { ...root, lockKey: 'k' }, 2],
  ])('for the end of %s', async (_, way, parent, ended) => {
    await store.openSession(newSession());
    const parents = [{ queue: 'q', id: 'root' }];
    const jobs = [parent, { id: 'a', parents }, { id: 'b', parents }].map(newJob);
    await store.add('q', jobs, { caller: 'p', seq: 1 });
    const claimed = await store.claim('q', { session: 's', seq: 1, count: 2 });
    const relays = { after: async () => undefined } as unknown as Engine['relays'];
    const run: Runner = (name, queue, args) => family.run(name, queue, ...args);
    const last = claimed.jobs.slice(0, ended).map((job) => completed(job, {}, `"of ${job.id}"`));
    if (ended === 2) await store.settle('q', last.splice(0, 1));
    await settle({ run, relays } as Engine, 'q', last, undefined, undefined);
    const took = await goBothWays(client, 'deliver', 'plain-deliver', ['q', 'q', TAG, 100]);
    expect(took).toBe(way);
  });
});
