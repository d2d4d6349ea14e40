// The keys of the Redis store, and that no call is unbounded: everything of a queue in one slot, nothing left behind, long work in
// bites.
import { readdir, readFile } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { newJob, newSession, openWithClient } from './support.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';

const TAG = '{holdfast:q}';
let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  seq = 0;
});

async function add(count: number, job: Partial<NewJob> = {}): Promise<void> {
  await store.add(
    'q',
    Array.from({ length: count }, () => newJob(job)),
    { caller: 'p', seq: ++seq },
  );
}

async function claim(count: number, request: { session?: string; timedMs?: number } = {}): Promise<ClaimedJob[]> {
  const { jobs } = await store.claim('q', { session: 's', seq: ++seq, count, ...request });
  return jobs;
}

function completed({ id, token }: ClaimedJob, keep: { count?: number; ageMs?: number } = {}): Outcome {
  return { kind: 'completed', jobId: id, token, value: '1', keep };
}

async function keys(): Promise<string[]> {
  return (await client.keys(`${TAG}:*`)).map((key) => key.replace(`${TAG}:`, '')).sort();
}

describe('keys of a queue in Redis', () => {
  test('are all in its slot, whatever is done with it', async () => {
    await store.openSession(newSession());
    await store.openSession(newSession({ id: '{other}' }));
    await add(5);
    await add(1, { id: '{a}:b', priority: 3 });
    await add(1, { delayMs: 60_000 });
    const [one, two, three] = await claim(3);
    await claim(1, { session: '{other}', timedMs: 60_000 });
    if (!one || !two || !three) return expect.fail('three were to be claimed');
    await store.write('q', [
      { jobId: '{a}:b', kind: 'log', row: 'x' },
      { jobId: one.id, kind: 'progress', progress: '1' },
    ]);
    await store.settle('q', [completed(one)], { caller: '{caller}', seq: 1 });
    await store.settle('q', [{ kind: 'failed', jobId: two.id, token: two.token, reason: 'r', stacktrace: '[]', keep: {} }]);
    await store.change('q', [three.id], { kind: 'revoke', reason: 'r' });
    await store.probe('q');
    const all = await client.keys('*');
    expect(all.length).toBeGreaterThan(20);
    // The names of all queues of the store.
    expect(all.filter((key) => !key.startsWith(`${TAG}:`))).toEqual(['{holdfast:}:queues']);
  });

  test('are gone with the jobs and sessions that they belong to', async () => {
    await store.openSession(newSession());
    await add(3);
    await add(2, { priority: 4 });
    const jobs = await claim(5, { timedMs: 60_000 });
    await store.write(
      'q',
      jobs.map(({ id }) => ({ jobId: id, kind: 'log', row: 'x' }) as const),
    );
    await store.write(
      'q',
      jobs.map(({ id }) => ({ jobId: id, kind: 'progress', progress: '1' }) as const),
    );
    await store.change('q', [jobs[0]?.id ?? ''], { kind: 'revoke', reason: 'r' });
    await store.settle(
      'q',
      jobs.slice(1).map((job) => completed(job, { count: 0 })),
      { caller: 's', seq: 9 },
    );
    await store.change('q', [jobs[0]?.id ?? ''], { kind: 'remove' });
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    expect(await keys()).toEqual(['added:p', 'call:s', 'events', 'meta']);
  });

  test('that remember calls of a producer expire after ten minutes, those of a session when it is closed', async () => {
    await store.openSession(newSession());
    await add(1);
    const [job] = await claim(1);
    await store.settle('q', [completed(job as ClaimedJob)], { caller: 's', seq: ++seq });
    await store.settle('q', [completed(job as ClaimedJob)], { caller: 'other', seq: 1 });
    for (const key of ['added:p', 'call:other']) expect(await client.pttl(`${TAG}:${key}`)).toBeGreaterThan(10 * 60_000);
    expect(await client.exists(`${TAG}:call:s`)).toBe(0);
    const again = { kind: 'release', jobId: job?.id ?? '', token: job?.token ?? '' } as const;
    expect((await store.settle('q', [again], { caller: 's', seq })).results).toEqual(['done']);
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    expect((await store.settle('q', [again], { caller: 's', seq })).results).toEqual(['done']);
    expect(await client.pttl(`${TAG}:call:s`)).toBeGreaterThan(10 * 60_000);
  });

  test('that remember calls are kept apart by lane, also when the session is closed', async () => {
    await store.openSession(newSession());
    await add(2);
    const jobs = await claim(2);
    const calls = jobs.map((_, lane) => ({ caller: 's', seq: ++seq, lane }));
    const released = jobs.map(({ id, token }) => ({ kind: 'release', jobId: id, token }) as const);
    const settleBoth = (): Promise<unknown[]> =>
      Promise.all(calls.map((call, n) => store.settle('q', [released[n] as Outcome], call)));
    const first = await settleBoth();
    expect(first).toEqual([{ results: ['done'] }, { results: ['done'] }]);
    expect(await settleBoth()).toEqual(first);
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    expect(await settleBoth()).toEqual(first);
    for (const key of ['call:s', 'call1:s']) expect(await client.pttl(`${TAG}:${key}`)).toBeGreaterThan(10 * 60_000);
  });

  test('of a dead session are removed with its last lock', async () => {
    await store.openSession(newSession({ durationMs: 1 }));
    await store.openSession(newSession({ id: 'empty', durationMs: 1 }));
    await add(1);
    await client.eval(script('renew').text, 1, TAG, '', 's', 0, '');
    await store.openSession(newSession({ id: 'long', durationMs: 300 }));
    const [job] = await claim(1, { session: 'long', timedMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 320));
    expect(await store.sweep('q', 10)).toEqual({ stalled: [], failed: [], more: false });
    expect((await keys()).filter((key) => /^(s|bound|ending|holders)/.test(key))).toEqual(['ending:long', 'holders', 's:long']);
    expect((await store.settle('q', [completed(job as ClaimedJob)])).results).toEqual(['done']);
    expect((await keys()).filter((key) => /^(s|bound|ending|holders|ends)/.test(key))).toEqual([]);
  });

  test('of events are kept within bounds', async () => {
    for (let round = 0; round < 40; round += 1) await add(1_000);
    expect((await store.events('q', 0, 100_000)).events.length).toBeGreaterThanOrEqual(10_000);
    expect(await client.xlen(`${TAG}:events`)).toBeLessThan(20);
    for (let round = 0; round < 300; round += 1) await store.configure('q', { paused: round % 2 === 0 });
    await store.forget('q', { events: 10 });
    expect(await client.xlen(`${TAG}:events`)).toBe(10);
  });
});

describe('long work on Redis is done in steps', () => {
  test('a sweep ends 100 locks at most, and all of them in the end', async () => {
    await store.openSession(newSession({ durationMs: 500 }));
    await add(300);
    await claim(300);
    await new Promise((resolve) => setTimeout(resolve, 510));
    const bites: number[] = [];
    for (let more = true; more; ) {
      const reply = await store.sweep('q', 10_000);
      bites.push(reply.stalled.length);
      more = reply.more;
    }
    expect(bites).toEqual([100, 100, 100]);
    const order = (await store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true })).jobs.map(({ id }) => Number(id));
    expect(order).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
  });

  test('an interrupted close counts no stall, whichever process completes it', async () => {
    await store.openSession(newSession({ maxStalls: 0 }));
    await add(200);
    await claim(200);
    expect(await client.eval(script('close-session').text, 1, TAG, 's', 0)).toBe(1);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 100, active: 100 });
    expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: false, notices: [] }]);
    expect(await store.sweep('q', 100)).toEqual({ stalled: [], failed: [], more: false });
    const { jobs } = await store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true });
    expect(jobs.map(({ stalledCounter }) => stalledCounter)).toEqual(jobs.map(() => 0));
    expect(jobs).toHaveLength(200);
  });

  test('a repeated claim is found behind the many that another lane has made since', async () => {
    await store.openSession(newSession());
    await add(1_000);
    await claim(150);
    const request = { session: 's', seq: ++seq, lane: 1, count: 250 };
    const { jobs } = await store.claim('q', request);
    await claim(500);
    expect((await store.claim('q', request)).jobs).toEqual(jobs);
    expect(jobs).toHaveLength(250);
  });

  test('many jobs that are due at once are moved in steps, and claims get what they ask for', async () => {
    await store.openSession(newSession());
    await add(500, { delayMs: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await claim(1)).toHaveLength(1);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 99, delayed: 400, active: 1 });
    expect((await store.claim('q', { session: 's', seq: ++seq, count: 1 })).nextInMs).toBe(0);
    expect(await claim(450)).toHaveLength(450);
  });

  test('running jobs of many sessions are listed page by page, in one order, from any position', async () => {
    const sessions = Array.from({ length: 30 }, (_, n) => `s${n}`);
    await Promise.all(sessions.map((id) => store.openSession(newSession({ id }))));
    await add(3_000);
    const ids: string[] = [];
    for (let round = 0; ids.length < 3_000; round += 1) {
      // Uneven shares, some with an end of their own, so that pages end within one session and not within another.
      const request = {
        session: sessions[(round * round) % 7 === 0 ? 0 : round % 30] ?? '',
        ...(round % 3 === 0 && { timedMs: 60_000 }),
      };
      ids.push(...(await claim(1 + (round % 40), request)).map(({ id }) => id));
    }
    const listed = async (start: number, end: number, asc: boolean): Promise<string[]> =>
      (await store.jobs('q', { lists: ['active'], start, end, asc })).jobs.map(({ id }) => id);
    expect(await listed(0, -1, true)).toEqual(ids);
    expect(await listed(0, -1, false)).toEqual(ids.toReversed());
    expect(await listed(2_345, 2_745, true)).toEqual(ids.slice(2_345, 2_746));
    expect(await listed(2_345, 2_355, false)).toEqual(ids.toReversed().slice(2_345, 2_356));
    expect(await listed(2_990, 5_000, true)).toEqual(ids.slice(2_990));
    expect(await listed(3_000, 5_000, true)).toEqual([]);
  });

  test('retention removes a bounded number with each finish, until it holds', async () => {
    await store.openSession(newSession());
    await add(500);
    await store.settle(
      'q',
      (await claim(500)).map((job) => completed(job)),
    );
    const left: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      await add(1);
      await store.settle(
        'q',
        (await claim(1)).map((job) => completed(job, { count: 10 })),
      );
      left.push((await store.status('q')).counts.completed);
    }
    expect(left).toEqual([400, 300, 200, 100, 10]);
  });

  test('clearing and requeueing in several steps finds all jobs, also old ones behind young ones', async () => {
    await add(700);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const between = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await add(600, { lifo: true });
    const olderThanMs = Math.ceil(performance.now() - between);
    const old = (await store.change('q', { lists: ['waiting'], olderThanMs, limit: 10_000 }, { kind: 'remove' })).changed;
    expect(old).toHaveLength(700);
    expect((await store.status('q')).counts.waiting).toBe(600);
    await store.openSession(newSession());
    await store.settle(
      'q',
      (await claim(600)).map((job) => completed(job)),
    );
    expect((await store.change('q', { lists: ['completed'], limit: 601 }, retryFrom('completed'))).changed.length).toBe(600);
    expect((await store.change('q', { lists: ['waiting'], limit: 550 }, { kind: 'remove' })).changed).toHaveLength(550);
  });

  test('removing in several steps finds all old jobs behind jobs that were added before them and ran just now', async () => {
    await add(5);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await add(295);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const between = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await store.openSession(newSession());
    const ran = await claim(5);
    await store.settle(
      'q',
      ran.map(({ id: jobId, token }) => ({
        kind: 'retry',
        jobId,
        token,
        reason: 'r',
        stacktrace: '[]',
        delayMs: 0,
        lifo: false,
      })),
    );
    const olderThanMs = Math.ceil(performance.now() - between);
    const { changed } = await store.change('q', { lists: ['waiting'], olderThanMs, limit: 1_000 }, { kind: 'remove' });
    expect(changed).toHaveLength(295);
    expect((await store.status('q')).counts.waiting).toBe(5);
  });
});

test('Redis scripts use no command that Redis 6.2 lacks', async () => {
  const KNOWN = new Set(
    (
      'TIME GET GETRANGE SET PUBLISH EXISTS UNLINK HGET HSET HSETNX HMGET HDEL HEXISTS HGETALL HSTRLEN HVALS HINCRBY SADD SREM SCARD SMEMBERS ZADD ZREM ZCARD ZCOUNT ' +
      'ZRANGE ZRANK ZSCORE ZMSCORE ZREVRANGE ZRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYSCORE ZPOPMIN LLEN LRANGE LTRIM LPOP RPUSH XADD XRANGE XTRIM ' +
      'XLEN RENAME SRANDMEMBER PEXPIRE'
    ).split(' '),
  );
  const folder = new URL('../../../src/store/redis/lua/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.lua'));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), 'utf8')));
  const used = texts.flatMap((text) => Array.from(text.matchAll(/'([A-Z]{3,})'/g), ([, command = '']) => command));
  expect(used.length).toBeGreaterThan(80);
  // Options that stand like commands do.
  const options = new Set(['LIMIT', 'WITHSCORES', 'MINID', 'COUNT']);
  expect(new Set(used.filter((word) => !KNOWN.has(word) && !options.has(word)))).toEqual(new Set());
});

test('keys that another program deleted neither make a sweep endless nor a claim fail', async () => {
  await store.openSession(newSession({ durationMs: 200 }));
  await add(6);
  await claim(2);
  await claim(2, { timedMs: 10 });
  await client.del(`${TAG}:run`);
  await new Promise((resolve) => setTimeout(resolve, 220));
  expect(await store.sweep('q', 10)).toEqual({ stalled: [], failed: [], more: false });
  await store.openSession(newSession({ id: 'new' }));
  expect((await store.claim('q', { session: 'new', seq: 1, count: 5 })).jobs).toEqual([]);
});
