// Metrics are counted through the journal: settles do not meet on one row, and a count is exact whenever the journal is folded.
import { expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJobs, newSession, openStore } from './support.js';

const POINTS = { metrics: { points: 5 } };

async function counted(store: PostgresStore): Promise<number | undefined> {
  return (await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } })).metrics?.count;
}

async function start() {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  await store.add('q', newJobs(6), { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 6 });
  let seq = 1;
  const finish = async (): Promise<void> => {
    const [job] = jobs.splice(0, 1);
    seq += 1;
    if (job !== undefined) await store.settle('q', [completed(job)], { caller: 's', seq }, { session: 's', seq, count: 0 });
  };
  return { url, store, finish, admin: await newClient(url) };
}

test('a settle of a queue that counts does not wait for the row of the queue, nor for the metrics', async () => {
  const { url, store, finish, admin } = await start();
  await store.configure('q', POINTS);
  await finish();
  await store.events('q', 0, 1);
  const blocker = await newClient(url);
  await blocker.query('BEGIN; SELECT FROM holdfast.queues FOR UPDATE; SELECT FROM holdfast.metrics FOR UPDATE');
  await finish();
  expect(await counted(store)).toBe(2);
  await blocker.query('COMMIT');
  expect((await admin.query('SELECT sum(count)::int AS n FROM holdfast.metrics')).rows).toEqual([{ n: 1 }]);
  await store.events('q', 0, 1);
  expect((await admin.query('SELECT sum(count)::int AS n FROM holdfast.metrics')).rows).toEqual([{ n: 2 }]);
  expect(await counted(store)).toBe(2);
});

test('a job that finished while the queue did not count is never counted, however late the journal is folded', async () => {
  const { store, finish } = await start();
  await store.configure('q', POINTS);
  await finish();
  await store.configure('q', { metrics: null });
  await finish();
  await store.configure('q', POINTS);
  expect(await counted(store)).toBe(0);
  await store.events('q', 0, 1);
  expect(await counted(store)).toBe(0);
  await finish();
  expect(await counted(store)).toBe(1);
});

test('a queue that does not count writes no minute to the journal', async () => {
  const { store, finish, admin, url } = await start();
  const blocker = await newClient(url);
  const written = async (): Promise<unknown[]> => {
    // One call of 32 folds the journal, unless the row of the queue is locked.
    await blocker.query('BEGIN; SELECT FROM holdfast.queues FOR UPDATE');
    await finish();
    await blocker.query('COMMIT');
    return (await admin.query('SELECT minute IS NOT NULL AS counts FROM holdfast.journal')).rows;
  };
  await store.events('q', 0, 1);
  expect(await written()).toEqual([{ counts: false }]);
  await store.configure('q', POINTS);
  expect(await written()).toEqual([{ counts: true }]);
});
