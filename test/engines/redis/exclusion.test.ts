// Lock keys, caps and named locks as Redis keeps them: bounded, woken for no more than there is, nothing left behind, and on data that was
// written before there were any.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { LockGrant } from '../../../src/store/contract/index.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { newJob, newSession, openWithClient } from './support.js';
import { until } from '../../support/wait/until.js';

const TAG = '{holdfast:q}';
let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  seq = 0;
});

async function add(count: number, job: Partial<NewJob> = {}): Promise<void> {
  const jobs = Array.from({ length: count }, () => newJob(job));
  await store.add('q', jobs, { caller: 'p', seq: ++seq });
}

async function claim(count: number, jobIds?: string[]): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count, ...(jobIds && { jobIds }) })).jobs;
}

function completed({ id, token }: ClaimedJob): Outcome {
  return { kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } };
}

/** Finishes and claims in one call. */
async function turnOver(jobs: ClaimedJob[], count: number): Promise<ClaimedJob[]> {
  const call = { caller: 's', seq: ++seq };
  return (await store.settle('q', jobs.map(completed), call, { session: 's', seq, count })).claimed?.jobs ?? [];
}

async function wish(token: string, keepPlaceMs = 60_000, name = 'x'): Promise<LockGrant> {
  const [grant] = await store.acquire('q', [{ name, token, session: 's', keepPlaceMs }]);
  return grant as LockGrant;
}

/** Grows with every change that such watchers are woken for. */
async function version(what: 'jobs' | 'locks'): Promise<unknown> {
  return client.eval(script('watch').text, 1, TAG, what);
}

describe('lock keys on Redis', () => {
  test('leave nothing behind when their jobs are gone', async () => {
    await store.openSession(newSession());
    await add(5, { lockKey: 'k' });
    await add(2, { lockKey: 'l', priority: 3 });
    await store.change('q', ['5'], { kind: 'remove' });
    let jobs = await claim(10);
    while (jobs.length > 0) jobs = await turnOver(jobs, 10);
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    const keys = (await client.keys(`${TAG}:*`)).map((key) => key.replace(`${TAG}:`, '')).sort();
    expect(keys).toEqual(['added:p', 'call:s', 'events', 'meta']);
  });

  test('are not scanned by a claim while their jobs wait', async () => {
    await store.openSession(newSession());
    for (let n = 0; n < 20; n += 1) await add(1_000, { lockKey: 'k' });
    const [job] = await claim(10);
    await add(1);
    await client.config('RESETSTAT');
    expect(await claim(10)).toHaveLength(1);
    // Whatever it read and wrote: a command for each of the others would be thousands.
    const stats = await client.info('commandstats');
    const calls = Array.from(stats.matchAll(/cmdstat_\w+:calls=(\d+)/g), ([, count]) => Number(count));
    expect(calls.reduce((sum, count) => sum + count, 0)).toBeLessThan(30);
    expect(await turnOver([job as ClaimedJob], 10)).toHaveLength(1);
  });

  test('wake watchers when they come free, unless the same call claims the next job', async () => {
    await store.openSession(newSession());
    await add(3, { lockKey: 'k' });
    const jobs = await claim(1);
    const before = await version('jobs');
    const next = await turnOver(jobs, 1);
    expect(next).toHaveLength(1);
    expect(await version('jobs')).toBe(before);
    await store.settle('q', next.map(completed), { caller: 's', seq: ++seq });
    expect(await version('jobs')).not.toBe(before);
  });

  test('do not hide an old job from clearing by age, behind young ones', async () => {
    await add(2, { lockKey: 'k' });
    await sleep(100);
    const between = performance.now();
    await sleep(400);
    await add(600);
    const olderThanMs = Math.ceil(performance.now() - between);
    expect((await store.change('q', { lists: ['waiting'], olderThanMs, limit: 10_000 }, { kind: 'remove' })).changed).toEqual([
      '1',
      '2',
    ]);
    expect((await store.status('q')).counts.waiting).toBe(600);
  });

  test('send the first job back when a later one is taken by its id', async () => {
    await store.openSession(newSession());
    await add(1, { id: 'first', lockKey: 'k' });
    await add(1, { id: 'second', lockKey: 'k', priority: 2 });
    const [taken] = await claim(1, ['second']);
    expect(taken?.id).toBe('second');
    expect(await claim(1)).toEqual([]);
    expect((await store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id)).toEqual([
      'first',
    ]);
    expect((await turnOver([taken as ClaimedJob], 5)).map(({ id }) => id)).toEqual(['first']);
  });
});

describe('a cap on Redis', () => {
  test('wakes watchers of jobs for a free place, not for one that the same call takes again', async () => {
    await store.openSession(newSession({ slots: 2 }));
    await store.configure('q', { cap: { maxActive: 2 } });
    await add(9);
    const jobs = await claim(2);
    const before = await version('jobs');
    const next = await turnOver(jobs, 2);
    expect(next).toHaveLength(2);
    expect(await version('jobs')).toBe(before);
    await turnOver(next, 1);
    expect(await version('jobs')).not.toBe(before);
  });
});

describe('named locks on Redis', () => {
  test('leave nothing behind when they are released, expire or end with their session', async () => {
    await store.openSession(newSession());
    await wish('a');
    await wish('b');
    await wish('late', 1);
    await wish('other', 0, 'y');
    await store.letGo('q', [{ name: 'x', token: 'a' }]);
    expect((await wish('b')).status).toBe('held');
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    const keys = (await client.keys(`${TAG}:*`)).map((key) => key.replace(`${TAG}:`, '')).sort();
    expect(keys).toEqual(['meta']);
  });

  test('read only the front of a long line, and let waiters behind expired places move up', async () => {
    await store.openSession(newSession());
    await wish('holder');
    const line = (prefix: string, keepPlaceMs: number) =>
      Array.from({ length: 300 }, (_, n) => ({ name: 'x', token: `${prefix}${n}`, session: 's', keepPlaceMs }));
    await store.acquire('q', line('lapses', 1_000));
    const grants = await store.acquire('q', line('stays', 60_000));
    expect([grants[0]?.ahead, grants[299]?.ahead]).toEqual([300, 599]);
    await sleep(1_050);
    // 200 at each look.
    expect((await wish('stays0')).ahead).toBe(100);
    expect((await wish('stays0')).ahead).toBe(0);
    expect((await wish('stays299')).ahead).toBe(299);
    await store.letGo('q', [{ name: 'x', token: 'holder' }]);
    expect((await wish('stays1')).ahead).toBe(1);
    expect((await wish('stays0')).status).toBe('held');
  });

  test('watchers of locks on Redis are woken by locks only', async () => {
    await store.openSession(newSession());
    await wish('a');
    let calls = 0;
    store.watch('q', () => void (calls += 1), 'locks');
    // The first look counts as a change.
    await until('the watcher is called', () => calls === 1);
    const before = await version('locks');
    await add(1);
    await turnOver(await claim(1), 1);
    expect(await version('locks')).toBe(before);
    await store.letGo('q', [{ name: 'x', token: 'a' }]);
    expect(await version('locks')).not.toBe(before);
    await until('the watcher is called', () => calls === 2);
  });

  test('a session on Redis closes in steps, whatever it holds', async () => {
    await store.openSession(newSession());
    const wishes = Array.from({ length: 250 }, (_, n) => ({ name: `n${n}`, token: 't', session: 's', keepPlaceMs: 0 }));
    await store.acquire('q', wishes);
    await add(120);
    await claim(120);
    await client.config('RESETSTAT');
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    const [, scripts] = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats')) ?? [];
    expect(Number(scripts)).toBeGreaterThanOrEqual(4);
    expect((await store.locks('q', { names: ['n0', 'n249'] })).filter((lock) => lock !== undefined)).toEqual([]);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 120, active: 0 });
  });
});
