// Many connections at the same rows: no transactions wait in a circle, and whatever order the server finds, the outcome is that of one after
// the other. postgres-contention-storm.test.ts has all verbs at once.
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, deadlocks, newClient, newDatabase, newJob, newJobs, newSession, openStore, shuffled } from './support.js';

async function claimAll(store: PostgresStore, count: number): Promise<ClaimedJob[]> {
  await store.openSession(newSession());
  return (await store.claim('q', { session: 's', seq: 1, count })).jobs;
}

describe('overlapping batches on PostgreSQL', () => {
  test('of outcomes, in any order, never deadlock', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.add('q', newJobs(300), { caller: 'p', seq: 1 });
    const jobs = await claimAll(store, 300);
    const outcomes = jobs.map(
      (job, n): Outcome => (n % 2 === 0 ? completed(job) : ({ ...completed(job), keep: { count: 0 } } as Outcome)),
    );
    const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => store.settle('q', shuffled(outcomes, n + 1))));
    expect(replies.flatMap(({ results }) => results)).not.toContain('lost');
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 150 });
    expect(await deadlocks(url)).toBe(0);
  });

  test('of the same new ids never deadlock, and each is added once', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const ids = Array.from({ length: 100 }, (_, n) => `job-${n}`);
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        store.add(
          'q',
          shuffled(ids, n + 1).map((id) => newJob({ id })),
          { caller: `p${n}`, seq: 1 },
        ),
      ),
    );
    expect(replies.flat().filter(({ status }) => status === 'added')).toHaveLength(100);
    expect(await deadlocks(url)).toBe(0);
  });
});

describe('a write of the owner at the same time as its settle, on PostgreSQL,', () => {
  test('does not make the settle miss the job', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.add('q', newJobs(60), { caller: 'p', seq: 1 });
    const jobs = await claimAll(store, 60);
    const results = await Promise.all(
      jobs.map(async (job) => {
        const writes = Array.from({ length: 3 }, (_, n) =>
          store.write('q', [{ jobId: job.id, token: job.token, kind: 'progress', progress: String(n) }]),
        );
        const [{ results: settled }] = await Promise.all([store.settle('q', [completed(job)]), ...writes]);
        return settled[0];
      }),
    );
    expect(results).toEqual(jobs.map(() => 'done'));
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 60 });
  });

  test('does not make an extension miss the lock', async () => {
    const store = await openStore({ url: await newDatabase() });
    await store.add('q', newJobs(40), { caller: 'p', seq: 1 });
    const jobs = await claimAll(store, 40);
    await Promise.all(
      jobs.flatMap((job) => [
        store.write('q', [{ jobId: job.id, token: job.token, kind: 'progress', progress: '1' }]),
        store.extend('q', [{ jobId: job.id, token: job.token, durationMs: 600_000 }]),
        store.write('q', [{ jobId: job.id, token: job.token, kind: 'progress', progress: '2' }]),
      ]),
    );
    for (const { id } of jobs) expect((await store.locks('q', { jobIds: [id] }))[0]?.endsInMs).toBeGreaterThan(500_000);
  });
});

describe('a PostgreSQL row that another transaction changes', () => {
  test('is recognised before it is locked, and free again after commit or rollback', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    await store.add('q', newJobs(2), { caller: 'p', seq: 1 });
    const [owner, other] = [await newClient(url), await newClient(url)];
    const untouched = async (client: typeof owner): Promise<boolean | undefined> => {
      const { rows } = await client.query<{ free: boolean }>(
        `SELECT holdfast.untouched(xmax) AS free FROM holdfast.jobs WHERE id = '1' AND xmax <> 0`,
      );
      return rows[0]?.free;
    };
    for (const end of ['ROLLBACK', 'COMMIT']) {
      await owner.query(`BEGIN; SET search_path TO holdfast; SELECT FROM jobs WHERE id = '1' FOR UPDATE`);
      await other.query('SET search_path TO holdfast');
      expect([await untouched(owner), await untouched(other)]).toEqual([true, false]);
      await owner.query(end);
      expect(await untouched(other)).toBe(true);
    }
    await owner.query(`BEGIN; SELECT FROM holdfast.jobs WHERE id = '1' FOR UPDATE`);
    expect((await store.claim('q', { session: 's', seq: 1, count: 2 })).jobs.map(({ id }) => id)).toEqual(['2']);
    await owner.query('ROLLBACK');
    expect((await store.claim('q', { session: 's', seq: 2, count: 2 })).jobs.map(({ id }) => id)).toEqual(['1']);
  });
});
