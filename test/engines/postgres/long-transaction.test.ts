// Beside a transaction that stays open, nothing that was claimed is cleared away. Claims must not walk through all of it every time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newJobs, newSession, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';

const JOBS = 6000;
const BATCH = 1000;
/** Longer than the pause between two looks for what is dead. */
const PAUSE_MS = 300;

const KINDS: [string, (n: number) => Partial<NewJob>, { vacuumed: boolean }][] = [
  ['prioritized jobs', (n) => ({ priority: 1 + (n % 3) }), { vacuumed: false }],
  ['jobs with a key', (n) => ({ lockKey: `key-${n}` }), { vacuumed: false }],
  // As autovacuum does at any moment: the server makes new plans, by what it has counted then.
  ['jobs with a key, after a vacuum,', (n) => ({ lockKey: `key-${n}` }), { vacuumed: true }],
  ['plain jobs', () => ({}), { vacuumed: false }],
];

/** Runs that many jobs, and leaves a few waiting. Calls `meanwhile` once, while jobs are active and freed keys are there. */
async function work(
  store: PostgresStore,
  make: (n: number) => Partial<NewJob>,
  meanwhile?: () => Promise<unknown>,
): Promise<void> {
  let seq = 0;
  for (let added = 0; added < JOBS; added += BATCH) {
    const jobs = Array.from({ length: BATCH }, (_, n) => newJob(make(n)));
    await store.add('q', jobs, { caller: 'p', seq: added + 1 });
    for (let left = BATCH; left > 0; ) {
      seq += 1;
      const claimed = await store.claim('q', { session: 's', seq, count: left });
      left -= claimed.jobs.length;
      await store.events('q', 0, 1);
      if (added === BATCH && left <= BATCH / 2) await meanwhile?.();
      seq += 1;
      await store.settle('q', claimed.jobs.map(completed), { caller: 's', seq });
    }
  }
}

/** Entries of indexes of jobs that a claim of ten reads. */
async function entriesRead(admin: Client): Promise<number> {
  // What the server has not reported yet of earlier transactions is in its count too.
  const count = async (): Promise<number> => {
    const { rows } = await admin.query(`SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::int AS read
      FROM pg_index WHERE indrelid = 'holdfast.jobs'::regclass OR indrelid = 'holdfast.freed_keys'::regclass`);
    return rows[0].read as number;
  };
  await admin.query('BEGIN');
  const before = await count();
  const { rows } = await admin.query(
    `SELECT holdfast.claim('q', 's', 900000, 10, NULL, NULL, NULL, NULL, NULL, false, 2147483647) AS reply`,
  );
  expect((JSON.parse(rows[0].reply) as { jobs: string[][] }).jobs[0]?.[0]).toHaveLength(10);
  const read = (await count()) - before;
  await admin.query('ROLLBACK');
  return read;
}

test.each(KINDS)(
  'a claim of %s beside a long transaction skips earlier claims',
  { timeout: paced(90_000) },
  async (_, make, { vacuumed }) => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    const admin = await newClient(url);
    const reader = await newClient(url);
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
    // The plans of this connection are made while the tables are small, as those of a worker that starts with its queue.
    await store.add(
      'q',
      Array.from({ length: 10 }, (__, n) => newJob(make(n))),
      { caller: 'first', seq: 1 },
    );
    await entriesRead(admin);
    await work(store, make, async () => vacuumed && admin.query('VACUUM ANALYZE'));
    // Reading events folds, and folding looks for what is dead: now and then, the more rarely the longer it takes.
    let look = 0;
    const lookAndRead = async (): Promise<number> => {
      look += 1;
      await store.add(
        'q',
        Array.from({ length: 50 }, (__, n) => newJob(make(n))),
        { caller: 'p', seq: JOBS + look },
      );
      await store.events('q', 0, 1);
      return entriesRead(admin);
    };
    // A claim looks at 200 freed keys again, each of which has a few dead entries.
    await expect.poll(lookAndRead, { timeout: 30_000, interval: PAUSE_MS }).toBeLessThan(JOBS / 2);
    // All jobs that were added meanwhile are there, in its order.
    const { jobs } = await store.claim('q', { session: 's', seq: 900_001, count: 20 });
    expect(jobs).toHaveLength(20);
    expect(jobs.map(({ priority }) => priority)).toEqual(jobs.map(({ priority }) => priority).sort((a, b) => a - b));
    await reader.query('COMMIT');
  },
);

test('a job of the first priority is claimed first although it is behind dead rows', { timeout: paced(90_000) }, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  const reader = await newClient(url);
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
  await work(store, () => ({ priority: 2 }));
  const late = await newClient(url);
  await late.query('BEGIN');
  await store.add('q', [newJob({ id: 'late', priority: 2 })], { caller: 't', seq: 1 }, late);
  const admin = await newClient(url);
  const lows: string[] = [];
  const look = async (): Promise<number | null> => {
    const id = `low-${lows.length}`;
    lows.push(id);
    await store.add('q', [newJob({ id, priority: 2 })], { caller: 'p', seq: JOBS + lows.length });
    await store.events('q', 0, 1);
    return (await admin.query('SELECT FROM holdfast.dead_ranges WHERE heads[1] > 0')).rowCount;
  };
  await expect.poll(look, { timeout: 30_000, interval: PAUSE_MS }).toBe(1);
  await store.add('q', [newJob({ id: 'high', priority: 1 })], { caller: 'p', seq: 2 * JOBS });
  await store.add('q', [newJob({ id: 'front', priority: 2, lifo: true })], { caller: 'p', seq: 2 * JOBS + 1 });
  const claim = async (seq: number, count: number) =>
    (await store.claim('q', { session: 's', seq, count })).jobs.map(({ id }) => id);
  expect(await claim(900_001, 2)).toEqual(['high', 'front']);
  // A job that commits below all dead rows is found when there is too little, at the latest.
  await late.query('COMMIT');
  expect((await claim(900_002, 200)).sort()).toEqual(['late', ...lows].sort());
  await reader.query('COMMIT');
});

test('dead journal rows are skipped, but none that commits late', { timeout: paced(90_000) }, async () => {
  const ROWS = 5000;
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession());
  await store.add('q', newJobs(20), { caller: 'p', seq: 1 });
  const [reader, late, admin] = [await newClient(url), await newClient(url), await newClient(url)];
  await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.jobs');
  let added = 0;
  /** Rows that are dead as soon as they are folded, and one that counts. */
  const churn = async (rows: number): Promise<void> => {
    added += 1;
    await admin.query(`INSERT INTO holdfast.journal (queue) SELECT 1 FROM generate_series(1, ${rows})`);
    await store.add('q', newJobs(1), { caller: 'p', seq: 1 + added });
    await store.events('q', 0, 1);
  };
  const count = async (): Promise<number> => {
    const { rows } = await admin.query(`SELECT pg_stat_get_xact_tuples_returned('holdfast.journal_pkey'::regclass)::int AS read`);
    return rows[0].read as number;
  };
  const churnAndRead = async (): Promise<number> => {
    await churn(1);
    await admin.query('BEGIN');
    const before = await count();
    await admin.query(`SELECT holdfast.claim('q', 's', 900000, 10, NULL, NULL, NULL, NULL, NULL, false, 2147483647)`);
    const read = (await count()) - before;
    await admin.query('ROLLBACK');
    return read;
  };
  await churn(ROWS);
  await expect.poll(churnAndRead, { timeout: 30_000, interval: PAUSE_MS }).toBeLessThan(ROWS / 4);
  // A transaction takes its number in the journal now, and commits when thousands of later ones have been folded.
  await late.query('BEGIN');
  await store.add('q', [newJob({ id: 'late' })], { caller: 't', seq: 1 }, late);
  await churn(ROWS);
  for (let n = 0; n < 4; n += 1) {
    await churn(1);
    await sleep(PAUSE_MS);
  }
  await late.query('COMMIT');
  expect((await store.status('q')).counts.waiting).toBe(20 + added + 1);
  await expect.poll(churnAndRead, { timeout: 30_000, interval: PAUSE_MS }).toBeLessThan(ROWS / 4);
  expect((await store.status('q')).counts.waiting).toBe(20 + added + 1);
  expect((await store.events('q', 0, 1000)).events.filter(({ jobId }) => jobId === 'late')).toHaveLength(2);
  await reader.query('COMMIT');
});
