// The fast path of claims and settles: which tables it reads, and what it does with jobs that are too large for one reply.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import { completed, newClient, newDatabase, newJob, newJobs, newSession, openStore } from './support.js';

/** The tables whose indexes a statement reads. It is rolled back. */
async function tablesRead(admin: Client, statement: string): Promise<string[]> {
  await admin.query('BEGIN');
  await admin.query(statement);
  const { rows } = await admin.query<{ name: string }>(`SELECT DISTINCT indrelid::regclass::text AS name FROM pg_index
    WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace)
      AND pg_stat_get_xact_numscans(indexrelid) > 0 ORDER BY 1`);
  await admin.query('ROLLBACK');
  return rows.map(({ name }) => name);
}

test('a plain claim and a plain settle read the tables of their work and no other', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  await store.add('q', newJobs(20), { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
  const admin = await newClient(url);
  // As connections of a store have it, and so that a small table is read through its index.
  await admin.query(`SET search_path TO holdfast; SET enable_seqscan = off`);
  // A call in 32 also applies the journal to the row of the queue, which these numbers do not ask for.
  const seldom = 'SELECT setseed(0.5)';
  const tables = ['callers', 'freed_keys', 'jobs', 'journal', 'queues', 'sessions'];
  expect(await tablesRead(admin, `${seldom}; SELECT claim_plain('q', 's', 2, 5, NULL, 1000)`)).toEqual(tables);
  const settle = `SELECT settle_plain('q', 's', 2, ARRAY['${jobs[0]?.id}'], ARRAY[${jobs[0]?.fence}::bigint], ARRAY['1'], 5, NULL, 1000)`;
  expect(await tablesRead(admin, `${seldom}; ${settle}`)).toEqual(tables);
});

test('jobs that do not fit into the reply of a claim stay unchanged', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  const data = JSON.stringify('x'.repeat(3_000_000));
  await store.add('q', [newJob(), ...Array.from({ length: 3 }, () => newJob({ data }))], { caller: 'p', seq: 1 });
  const first = await store.claim('q', { session: 's', seq: 1, count: 4, by: 'w' });
  expect(first).toMatchObject({
    more: true,
    drained: false,
    jobs: [
      { id: '1', attemptsStarted: 1 },
      { id: '2', data },
    ],
  });
  // One by one, because both do not fit into a reply of this verb either.
  const left = [...(await store.jobs('q', ['3'])).jobs, ...(await store.jobs('q', ['4'])).jobs].map((job) => ({
    ...job,
    data: '',
  }));
  expect(left).toMatchObject(['3', '4'].map((id) => ({ id, state: 'waiting', attemptsStarted: 0 })));
  for (const job of left) expect(job).not.toHaveProperty('processedOn');
  for (const job of left) expect(job).not.toHaveProperty('processedBy');
  expect((await store.status('q')).counts).toMatchObject({ waiting: 2, active: 2 });

  const call = { caller: 's', seq: 2 };
  const second = await store.settle('q', first.jobs.map(completed), call, { session: 's', seq: 2, count: 4, by: 'w' });
  expect(second).toMatchObject({ results: ['done', 'done'], claimed: { more: true, jobs: [{ id: '3', attemptsStarted: 1 }] } });
  expect((await store.status('q')).counts).toMatchObject({ waiting: 1, active: 1, completed: 2 });
  const { events } = await store.events('q', 0, 1000);
  expect(events.filter(({ name }) => name === 'active').map(({ jobId }) => jobId)).toEqual(['1', '2', '3']);
});
