// Beside a transaction that stays open, nothing that was claimed is cleared away. Claims must not walk through all of it every time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { NewJob } from '../../src/job/record.js';
import type { PostgresStore } from '../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newJobs, newSession, openStore } from './postgres-support.js';

const JOBS = 6000;
const BATCH = 1000;
/** Longer than the pause between two looks for what is dead. */
const PAUSE_MS = 300;

const KINDS: [string, (n: number) => Partial<NewJob>][] = [
  ['prioritized jobs', (n) => ({ priority: 1 + (n % 3) })],
  ['jobs with a key', (n) => ({ lockKey: `key-${n}` })],
  ['plain jobs', () => ({})],
];

/** Runs that many jobs, and leaves a few waiting. */
async function work(store: PostgresStore, make: (n: number) => Partial<NewJob>): Promise<void> {
  let seq = 0;
  for (let added = 0; added < JOBS; added += BATCH) {
    const jobs = Array.from({ length: BATCH }, (_, n) => newJob(make(n)));
    await store.add('q', jobs, { caller: 'p', seq: added + 1 });
    for (let left = BATCH; left > 0; ) {
      seq += 1;
      const claimed = await store.claim('q', { session: 's', seq, count: left });
      left -= claimed.jobs.length;
      await store.events('q', 0, 1);
      seq += 1;
      await store.settle('q', claimed.jobs.map(completed), { caller: 's', seq });
    }
  }
}

/** Entries of indexes of jobs that a claim of ten reads. */
async function entriesRead(admin: Client): Promise<number> {
  await admin.query('BEGIN');
  const { rows } = await admin.query(`SELECT holdfast.claim('q', 's', 900000, 10, NULL, NULL, NULL, NULL, NULL, false) AS reply`);
  expect((JSON.parse(rows[0].reply) as { jobs: string[][] }).jobs[0]?.[0]).toHaveLength(10);
  const { rows: counts } = await admin.query(`SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::int AS read
    FROM pg_index WHERE indrelid = 'holdfast.jobs'::regclass OR indrelid = 'holdfast.freed_keys'::regclass`);
  await admin.query('ROLLBACK');
  return counts[0].read as number;
}

test.each(KINDS)('a claim of %s does not walk through what was claimed before', { timeout: 90_000 }, async (_, make) => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  const admin = await newClient(url);
  const reader = await newClient(url);
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
  await work(store, make);
  // Reading events folds, and folding looks for what is dead.
  for (let look = 0; look < 3; look += 1) {
    await store.add(
      'q',
      Array.from({ length: 50 }, (__, n) => newJob(make(n))),
      { caller: 'p', seq: JOBS + look + 1 },
    );
    await sleep(PAUSE_MS);
    await store.events('q', 0, 1);
  }
  expect(await entriesRead(admin)).toBeLessThan(JOBS / 4);
  // What was added meanwhile is all there, in its order.
  const { jobs } = await store.claim('q', { session: 's', seq: 900_001, count: 20 });
  expect(jobs).toHaveLength(20);
  expect(jobs.map(({ priority }) => priority)).toEqual(jobs.map(({ priority }) => priority).sort((a, b) => a - b));
  await reader.query('COMMIT');
});

test('a job of the first priority that is added behind what is dead is claimed first', { timeout: 90_000 }, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  const reader = await newClient(url);
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
  await work(store, () => ({ priority: 2 }));
  const late = await newClient(url);
  await late.query('BEGIN');
  await store.add('q', [newJob({ id: 'late', priority: 2 })], { caller: 't', seq: 1 }, late);
  for (let look = 0; look < 3; look += 1) {
    await store.add('q', [newJob({ id: `low-${look}`, priority: 2 })], { caller: 'p', seq: JOBS + look + 1 });
    await sleep(PAUSE_MS);
    await store.events('q', 0, 1);
  }
  const admin = await newClient(url);
  expect((await admin.query('SELECT FROM holdfast.dead_ranges WHERE cardinality(priorities) > 0')).rowCount).toBe(1);
  await store.add('q', [newJob({ id: 'high', priority: 1 })], { caller: 'p', seq: JOBS + 9 });
  await store.add('q', [newJob({ id: 'front', priority: 2, lifo: true })], { caller: 'p', seq: JOBS + 10 });
  const claim = async (seq: number, count: number) =>
    (await store.claim('q', { session: 's', seq, count })).jobs.map(({ id }) => id);
  expect(await claim(900_001, 2)).toEqual(['high', 'front']);
  // What commits below everything that was dead is found when there is too little, at the latest.
  await late.query('COMMIT');
  expect((await claim(900_002, 9)).sort()).toEqual(['late', 'low-0', 'low-1', 'low-2']);
  await reader.query('COMMIT');
});

test('dead rows of the journal are skipped, and none that is committed late', { timeout: 60_000 }, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  await store.add('q', newJobs(20), { caller: 'p', seq: 1 });
  const [reader, late, admin] = [await newClient(url), await newClient(url), await newClient(url)];
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
  const churn = async (look: number): Promise<void> => {
    await admin.query('INSERT INTO holdfast.journal (queue) SELECT 1 FROM generate_series(1, 4000)');
    await store.add('q', newJobs(1), { caller: 'p', seq: 2 + look });
    await sleep(PAUSE_MS);
    await store.events('q', 0, 1);
  };
  const journalRead = async (): Promise<number> => {
    await admin.query('BEGIN');
    await admin.query(`SELECT holdfast.claim('q', 's', 900000, 10, NULL, NULL, NULL, NULL, NULL, false)`);
    const { rows } = await admin.query(`SELECT pg_stat_get_xact_tuples_returned('holdfast.journal_pkey'::regclass)::int AS read`);
    await admin.query('ROLLBACK');
    return rows[0].read as number;
  };
  for (let look = 0; look < 4; look += 1) await churn(look);
  expect(await journalRead()).toBeLessThan(10_000);
  // Takes its number in the journal now.
  await late.query('BEGIN');
  await store.add('q', [newJob({ id: 'late' })], { caller: 't', seq: 1 }, late);
  for (let look = 4; look < 8; look += 1) await churn(look);
  await late.query('COMMIT');
  expect((await store.status('q')).counts.waiting).toBe(20 + 8 + 1);
  for (let look = 8; look < 12; look += 1) await churn(look);
  expect((await store.status('q')).counts.waiting).toBe(20 + 12 + 1);
  expect((await store.events('q', 0, 1000)).events.filter(({ jobId }) => jobId === 'late')).toHaveLength(2);
  expect(await journalRead()).toBeLessThan(10_000);
  await reader.query('COMMIT');
});
