// Marked jobs on Redis: what their queue keeps beside them, which calls still take the fast path, and that processes of versions which do
// not know marked jobs leave such a queue alone.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Deduplication } from '../../../src/job/deduplication.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { goBothWays, TAG } from './both-ways.js';
import { levelOf, newJob, newSession, openWithClient } from './support.js';

let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession());
  seq = 0;
});

async function add(...jobs: Partial<NewJob>[]): Promise<void> {
  await store.add('q', jobs.map(newJob), { caller: 'p', seq: ++seq });
}

const unique = (id: string, mode: Partial<Deduplication> = {}): Partial<NewJob> => ({ deduplication: { id, ...mode } });

async function claim(count: number): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count })).jobs;
}

async function complete(jobs: ClaimedJob[], keep: { count?: number } = {}): Promise<void> {
  await store.settle(
    'q',
    jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: 'null', keep })),
  );
}

/** The arguments of lua/settle.lua for these completed jobs and a claim of one. */
function settleArguments(...jobs: ClaimedJob[]): string[] {
  const number = String(++seq);
  const group = ['c', String(jobs.length), '', 's:', ...jobs.flatMap(({ id, fence }) => [id, String(fence), 'null'])];
  return ['s', number, '', '1', 's', number, '', '1', '', '', String(jobs.length), ...group];
}

describe('a marked job on Redis', () => {
  test('has a capital state letter and its extras in one hash; a plain job has neither', async () => {
    await add({});
    await add({ lockKey: 'k' });
    expect([await levelOf(client, TAG), await client.exists(`${TAG}:extra`)]).toEqual([1, 0]);
    await add(unique('a'), {});
    expect(await levelOf(client, TAG)).toBe(2);
    expect(await client.hgetall(`${TAG}:extra`)).toEqual({ 3: '8,{"d":"a"}' });
    const runs = await client.hmget(`${TAG}:run`, '1', '2', '3', '4');
    expect(runs.map((run) => run?.slice(0, 2))).toEqual(['w,', 'w,', 'W,', 'w,']);
  });

  test('keeps its extras when no other option needs the general way to add it', async () => {
    await add({}, { scheduleId: 's' }, {});
    expect(await levelOf(client, TAG)).toBe(2);
    expect(await client.hgetall(`${TAG}:extra`)).toEqual({ 2: '16,{"s":"s"}' });
    const runs = await client.hmget(`${TAG}:run`, '1', '2', '3');
    expect(runs.map((run) => run?.slice(0, 2))).toEqual(['w,', 'W,', 'w,']);
    expect((await claim(3)).map(({ id, scheduleId }) => [id, scheduleId])).toEqual([
      ['1', undefined],
      ['2', 's'],
      ['3', undefined],
    ]);
  });

  test('never takes the fast path, and plain jobs of its queue still do', async () => {
    await add({}, {}, unique('a'), unique('b'), {}, {});
    const jobs = await claim(3);
    const [one, two, marked] = jobs as [ClaimedJob, ClaimedJob, ClaimedJob];
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(one))).toBe('long');
    await claim(1);
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(marked))).toBe('long');
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(one, two))).toBe('short');
    expect(await goBothWays(client, 'add', 'plain-add', ['p', String(++seq), '1', `1\0n\0{}\0{}`])).toBe('short');
  });

  test('leaves nothing behind when it is trimmed, removed, or its entry has passed', async () => {
    await add(unique('a', { ttlMs: 1 }), unique('b'), unique('c', { ttlMs: 600_000 }));
    await complete(await claim(2), { count: 0 });
    await expect.poll(async () => (await store.sweep('q', 10), client.zcard(`${TAG}:dedupEnds`))).toBe(1);
    expect(await client.hkeys(`${TAG}:dedup`)).toEqual(['c']);
    expect(await client.hkeys(`${TAG}:extra`)).toEqual(['3']);
    await store.change('q', { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
    expect(await client.exists(`${TAG}:dedup`, `${TAG}:dedupEnds`, `${TAG}:extra`)).toBe(0);
  });
});
