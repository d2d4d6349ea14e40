// The server's memory of callers, which makes calls repeatable, does not grow with the number of queues and workers that ever were.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { completed, newClient, newDatabase, newJobs, newProxy, newServer, newSession, openStore } from './support.js';

async function callers(admin: Client): Promise<string[]> {
  return (await admin.query<{ id: string }>('SELECT id FROM holdfast.callers ORDER BY id')).rows.map(({ id }) => id);
}

test('PostgreSQL keeps no caller of a queue that is closed', async () => {
  const url = await newDatabase();
  const admin = await newClient(url);
  for (let n = 0; n < 3; n += 1) {
    const queue = new Queue('q', { connection: url });
    await queue.add('job', {});
    await queue.add('job', {}, { delay: 10 });
    expect((await callers(admin)).length).toBeGreaterThan(0);
    await queue.close();
    expect(await callers(admin)).toEqual([]);
  }
});

test('PostgreSQL keeps no caller of a session that is closed', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const admin = await newClient(url);
  await store.openSession(newSession());
  await store.add('q', newJobs(2), { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
  await store.settle('q', jobs.map(completed), { caller: 's', seq: 2 }, { session: 's', seq: 2, count: 1 });
  expect(await callers(admin)).toEqual(['p', 's']);
  await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
  expect(await callers(admin)).toEqual(['p']);
});

test('PostgreSQL keeps the caller of a call without a reply, because the call may still arrive', async () => {
  const server = await newServer();
  const proxy = await newProxy(server);
  const admin = await newClient(server.url);
  const queue = new Queue('q', { connection: { url: proxy.url(server.url), notify: false } });
  queue.on('error', () => undefined);
  await queue.waitUntilReady();
  proxy.dropReplies({ times: 1 });
  await queue.add('job', {});
  await queue.add('job', {});
  await queue.close();
  expect(await callers(admin)).toHaveLength(1);
});

test('PostgreSQL forgets any number of old callers within a few sweeps, and keeps the others', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const admin = await newClient(url);
  await store.openSession(newSession());
  await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  await admin.query(`INSERT INTO holdfast.callers (queue, id, seq, used_at) SELECT 1, 'old-' || n, 1, 0 FROM generate_series(1, 2600) n;
    UPDATE holdfast.callers SET used_at = 0 WHERE id = 's'; UPDATE holdfast.holdfast_schema SET pruned_at = 0`);
  for (let sweep = 0; sweep < 8; sweep += 1) await store.sweep('q', 1);
  expect(await callers(admin)).toEqual(['p', 's']);
  const { rows } = await admin.query(`SELECT FROM holdfast.callers WHERE look_at <= date_part('epoch', now()) * 1000`);
  expect(rows).toEqual([]);
});

test('a call to PostgreSQL changes no index of the callers', async () => {
  const url = await newDatabase();
  const store = await openStore({ url, max: 1 });
  for (let seq = 1; seq <= 200; seq += 1) await store.add('q', newJobs(1), { caller: 'p', seq });
  const admin = await newClient(url);
  const updates = async () =>
    (
      await admin.query<{ all: number; hot: number }>(
        `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'callers'`,
      )
    ).rows[0];
  // A connection hands in its statistics with a call that comes a second after the last time.
  await expect
    .poll(async () => (await store.status('q')) && (await updates())?.all, { timeout: 10_000, interval: 300 })
    .toBeGreaterThanOrEqual(190);
  const { all = 0, hot = 0 } = (await updates()) ?? {};
  expect(hot).toBeGreaterThan(0.9 * all);
});
