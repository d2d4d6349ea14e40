// Keys of jobs where transactions meet: no call waits because of a key, no turn is lost, and two jobs of one key are never active at once.
import { describe, expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJob, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';

const KEY_LOCK = `SELECT pg_advisory_xact_lock(key_lock((SELECT queue FROM queues), $1))`;

async function scene(): Promise<{ url: string; store: PostgresStore; claim: (count?: number) => Promise<string[]> }> {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  let seq = 0;
  const claim = async (count = 10): Promise<string[]> => {
    seq += 1;
    return (await store.claim('q', { session: 's', seq, count })).jobs.map(({ id }) => id);
  };
  return { url, store, claim };
}

const keyed = (...ids: string[]) => ids.map((id) => newJob({ id, lockKey: id.charAt(0) }));

describe('lock keys on PostgreSQL, with many workers and few keys', () => {
  test('run one job of a key at a time, in order, and all keys get their turn', async () => {
    const url = await newDatabase();
    const stores = [await openStore({ url, max: 4 }), await openStore({ url, max: 4 })];
    const [store] = stores as [PostgresStore];
    const ids = ['a', 'b', 'c', 'd', 'e'].flatMap((key) => Array.from({ length: 30 }, (_, n) => `${key}${n}`));
    // In calls of their own and together: what is added alone is put behind by claims.
    for (const [n, id] of ids.slice(0, 50).entries()) await store.add('q', keyed(id), { caller: 'p', seq: n + 1 });
    await store.add('q', keyed(...ids.slice(50)), { caller: 'p', seq: 51 });
    const running = new Map<string, string>();
    const order: string[] = [];
    const work = async (side: PostgresStore, session: string): Promise<void> => {
      await side.openSession(newSession({ id: session }));
      for (let seq = 1; order.length < ids.length; seq += 2) {
        const { jobs } = await side.claim('q', { session, seq, count: 2 });
        for (const { id } of jobs) {
          expect(running.get(id.charAt(0))).toBeUndefined();
          running.set(id.charAt(0), id);
          order.push(id);
        }
        for (const { id } of jobs) running.delete(id.charAt(0));
        await side.settle('q', jobs.map(completed), { caller: session, seq: seq + 1 });
      }
    };
    await Promise.all(stores.flatMap((side, n) => [1, 2, 3].map((m) => work(side, `w${n}.${m}`))));
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      expect(order.filter((id) => id.startsWith(key))).toEqual(ids.filter((id) => id.startsWith(key)));
    }
    expect(await deadlocks(url)).toBe(0);
  });
});

describe('lock keys on PostgreSQL, beside a transaction that stays open', () => {
  test('are not blocked when it holds a job of the key', async () => {
    const { url, store, claim } = await scene();
    await store.add('q', keyed('k1', 'k2'), { caller: 'p', seq: 1 });
    const client = await newClient(url);
    await client.query('BEGIN');
    await store.add('q', keyed('k3'), { caller: 'p', seq: 2 }, client);
    expect(await claim()).toEqual(['k1']);
    await finish(store, 'k1');
    expect(await claim()).toEqual(['k2']);
    await finish(store, 'k2');
    expect(await claim()).toEqual([]);
    await client.query('COMMIT');
    expect(await claim()).toEqual(['k3']);
  });

  test('keep their order when it holds the row of the next job', async () => {
    const { url, store, claim } = await scene();
    await store.add('q', keyed('k1', 'k2'), { caller: 'p', seq: 1 });
    expect(await claim()).toEqual(['k1']);
    const client = await newClient(url);
    await client.query('BEGIN');
    await client.query(`SELECT FROM holdfast.jobs WHERE id = 'k2' FOR UPDATE`);
    await finish(store, 'k1');
    const { jobs, nextInMs } = await store.claim('q', { session: 's', seq: 100, count: 5 });
    expect(jobs).toEqual([]);
    expect(nextInMs).toBeLessThan(50);
    await client.query('COMMIT');
    expect((await store.claim('q', { session: 's', seq: 101, count: 5 })).jobs).toMatchObject([{ id: 'k2' }]);
  });

  test('do not block other keys, claims or settles when it holds the key itself', async () => {
    const { url, store, claim } = await scene();
    await store.add('q', [...keyed('k1', 'k2'), newJob({ id: 'free1' })], { caller: 'p', seq: 1 });
    expect(await claim(1)).toEqual(['k1']);
    const client = await newClient(url);
    await client.query('BEGIN; SET LOCAL search_path TO holdfast');
    await client.query(KEY_LOCK, ['k']);
    await finish(store, 'k1');
    expect(await claim()).toEqual(['free1']);
    await client.query('COMMIT');
    expect(await claim()).toEqual(['k2']);
  });

  test('make a call wait that names a job of the key it holds', async () => {
    const { url, store } = await scene();
    await store.add('q', keyed('k1'), { caller: 'p', seq: 1 });
    const client = await newClient(url);
    await client.query('BEGIN; SET LOCAL search_path TO holdfast');
    await client.query(KEY_LOCK, ['k']);
    const taking = store.claim('q', { session: 's', seq: 1, count: 1, jobIds: ['k1'] });
    await waitForWaiter(client);
    await client.query('COMMIT');
    expect((await taking).jobs).toMatchObject([{ id: 'k1' }]);
  });
});

describe('the first job of a lock key on PostgreSQL', () => {
  test('gives its turn to the next job of the call when it was a duplicate', async () => {
    const { store, claim } = await scene();
    await store.add('q', [newJob({ id: 'known' })], { caller: 'p', seq: 1 });
    expect(await claim()).toEqual(['known']);
    await store.add('q', [newJob({ id: 'known', lockKey: 'k' }), ...keyed('k2', 'k3')], { caller: 'p', seq: 2 });
    expect(await claim()).toEqual(['k2']);
  });

  test('keeps its place among jobs without a key, also after a change of priority', async () => {
    const { store, claim } = await scene();
    const jobs = [...keyed('k1', 'k2'), newJob({ id: 'free' })].map((job) => ({ ...job, priority: job.id === 'free' ? 7 : 5 }));
    await store.add('q', jobs, { caller: 'p', seq: 1 });
    await store.change('q', ['k1'], { kind: 'priority', priority: 9, lifo: false });
    expect([await claim(1), await claim(1), await claim(1)]).toEqual([['k2'], ['free'], []]);
  });
});

test('a unique index of PostgreSQL refuses a second active job of a key', async () => {
  const { url, store, claim } = await scene();
  await store.add('q', keyed('k1', 'k2'), { caller: 'p', seq: 1 });
  expect(await claim()).toEqual(['k1']);
  const client = await newClient(url);
  await expect(client.query(`UPDATE holdfast.jobs SET state = 3 WHERE id = 'k2'`)).rejects.toMatchObject({ code: '23505' });
});

test('PostgreSQL claims write nothing while all jobs wait for their keys', async () => {
  const { url, store, claim } = await scene();
  await store.add('q', keyed('k1', 'k2', 'k3'), { caller: 'p', seq: 1 });
  expect(await claim()).toEqual(['k1']);
  expect(await claim()).toEqual([]);
  const client = await newClient(url);
  // A call that goes on to claim locks the row of the caller first.
  const position = async (): Promise<unknown> =>
    (await client.query(`SELECT xmin::text, xmax::text FROM holdfast.callers WHERE id = 's'`)).rows;
  const before = await position();
  for (let n = 0; n < 5; n += 1) expect(await claim()).toEqual([]);
  expect(await position()).toEqual(before);
});

async function finish(store: PostgresStore, id: string): Promise<void> {
  const found = (await store.locks('q', { session: 's' })).find(({ jobId }) => jobId === id);
  const { results } = await store.settle('q', [
    { kind: 'completed', jobId: id, token: found?.token ?? '', value: '1', keep: {} },
  ]);
  expect(results).toEqual(['done']);
}

async function waitForWaiter(client: Awaited<ReturnType<typeof newClient>>): Promise<void> {
  await until('a transaction waits', async () => (await blocked(client)) === 1);
}

test('a claim of one job passes over a job whose key is taken, and finds the next key', async () => {
  const store = await openStore({ url: await newDatabase() });
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'a', lockKey: 'k' })], { caller: 'p', seq: 1 });
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  const jobs = [newJob({ id: 'b', lockKey: 'k' }), newJob({ id: 'c', lockKey: 'l' })];
  await store.add('q', jobs, { caller: 'p', seq: 2 });
  const { jobs: claimed } = await store.claim('q', { session: 's', seq: 2, count: 1 });
  expect(claimed.map(({ id }) => id)).toEqual(['c']);
});
