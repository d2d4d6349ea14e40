// What the schema promises beyond the contract: numbers that only grow, lists that are found without looking at others, and counts and
// events that are exact although they are gathered later.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newJobs, newServer, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';

async function fences(store: PostgresStore, seq: number, count: number): Promise<number[]> {
  return (await store.claim('q', { session: 's', seq, count })).jobs.map(({ fence }) => fence);
}

describe('fences on PostgreSQL', () => {
  test('follow the clock of the server in µs, one after the other', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    await store.add('q', newJobs(3), { caller: 'p', seq: 1 });
    const [a = 0, b = 0, c = 0] = [...(await fences(store, 1, 2)), ...(await fences(store, 2, 1))];
    expect(b).toBe(a + 1);
    expect(c).toBeGreaterThan(b);
    const { rows } = await (await newClient(url)).query<{ us: string }>(
      `SELECT floor(extract(epoch FROM clock_timestamp()) * 1e6) AS us`,
    );
    expect(Math.abs(Number(rows[0]?.us) - a)).toBeLessThan(10_000_000);
  });

  test('grow after a failover that lost the last ones', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    await store.add('q', newJobs(2), { caller: 'p', seq: 1 });
    const [before = 0] = await fences(store, 1, 1);
    // What a failover leaves: an older state of the sequence, and a server that is not the one that the queue knows.
    const admin = await newClient(url);
    await admin.query(`SELECT setval('holdfast.fences', 1); UPDATE holdfast.queues SET fenced_on = 'yesterday'`);
    const [after = 0] = await fences(store, 2, 1);
    expect(after).toBeGreaterThan(before);
  });

  test('are unique while many queues begin at once', async () => {
    const store = await openStore({ url: await newDatabase() });
    const queues = Array.from({ length: 12 }, (_, n) => `q${n}`);
    const claimed = await Promise.all(
      queues.map(async (queue) => {
        await store.openSession(newSession({ queue }));
        await store.add(queue, newJobs(50), { caller: queue, seq: 1 });
        return (await store.claim(queue, { session: 's', seq: 1, count: 50 })).jobs.map(({ fence }) => fence);
      }),
    );
    expect(new Set(claimed.flat()).size).toBe(600);
  });
});

describe('the head of the waiting list on PostgreSQL', () => {
  test('does not skip a job whose transaction commits late', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const client = await newClient(url);
    await store.openSession(newSession());
    await client.query('BEGIN');
    await store.add('q', [newJob({ id: 'late' })], { caller: 't', seq: 1 }, client);
    await store.add('q', newJobs(20), { caller: 'p', seq: 1 });
    expect(await fences(store, 1, 10)).toHaveLength(10);
    // Reading folds, and folding looks for the head.
    await store.events('q', 0, 1);
    const { rows } = await client.query<{ head: string }>('SELECT head_waiting AS head FROM holdfast.queues');
    expect(Number(rows[0]?.head)).toBeGreaterThan(0);
    await client.query('COMMIT');
    const { jobs } = await store.claim('q', { session: 's', seq: 2, count: 100 });
    expect(jobs.map(({ id }) => id)).toContain('late');
    expect(jobs).toHaveLength(11);
  });

  test('moves back to an earlier job while the queue is busy', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const client = await newClient(url);
    await store.openSession(newSession());
    await client.query('BEGIN');
    await store.add('q', [newJob({ id: 'late' })], { caller: 't', seq: 1 }, client);
    await store.add('q', newJobs(500), { caller: 'p', seq: 1 });
    await fences(store, 1, 10);
    await store.events('q', 0, 1);
    await client.query('COMMIT');
    let seq = 1;
    await until('the late job is claimed', async () => {
      seq += 1;
      const { jobs } = await store.claim('q', { session: 's', seq, count: 5 });
      await store.events('q', 0, 1);
      return jobs.some(({ id }) => id === 'late');
    });
  });
});

describe('a claim on PostgreSQL', () => {
  /** Pages that the server looks at for a claim of ten jobs, of which the second time is not disturbed by what is found out once. */
  async function pages(admin: Client, seq: number): Promise<number> {
    const sql = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT holdfast.claim('q', 's', $1, 10, NULL, NULL, NULL, NULL, NULL, false, 2147483647)`;
    const counts: number[] = [];
    for (const each of [seq, seq + 1, seq + 2]) {
      const { rows } = await admin.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(sql.replace('$1', String(each)));
      const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': got = 0 } = rows[0]?.['QUERY PLAN'][0]?.Plan ?? {};
      counts.push(hit + got);
    }
    return Math.min(...counts);
  }

  test.each([
    ['plain', {}, false],
    ['prioritized', { priority: 3 }, true],
  ])(
    'looks at as many pages with many waiting (%s) and delayed jobs as with few, and after many claims',
    async (_, job, cleared) => {
      // On a server of its own: claims look again at rows that another open transaction, of any database, may still see.
      const { url } = await newServer();
      const store = await openStore({ url, max: 1, notify: false });
      const admin = await newClient(url);
      await admin.query('ALTER TABLE holdfast.jobs SET (autovacuum_enabled = off)');
      await store.openSession(newSession());
      const fill = (seq: number, count: number): Promise<unknown> =>
        store.add(
          'q',
          Array.from({ length: count }, (_each, n) => newJob(n % 5 === 0 ? { delayMs: 3_600_000 + n } : job)),
          { caller: 'p', seq },
        );
      await fill(1, 1_000);
      const few = await pages(admin, 1);
      for (let seq = 2; seq <= 11; seq += 1) await fill(seq, 5_000);
      const many = await pages(admin, 11);
      // Whatever lies in front of it, dead and not cleared away. Reading the events folds, and folding finds the head of the list.
      for (let seq = 21; seq <= 30; seq += 1) {
        const { jobs } = await store.claim('q', { session: 's', seq: 2 * seq, count: 2_000 });
        await store.settle('q', jobs.map(completed), { caller: 's', seq: 2 * seq + 1 });
      }
      await sleep(300);
      await store.events('q', 0, 1);
      // Only the plain list has a head; the others wait for vacuum.
      if (cleared) await admin.query('VACUUM holdfast.jobs');
      const late = await pages(admin, 100);
      const most = few * 1.3;
      expect({ few, many, late, tooMany: many > most || late > most }).toEqual({ few, many, late, tooMany: false });
    },
  );
});

describe('a call on PostgreSQL that names one job', () => {
  test('reads only that job, however many are active, and whatever the statistics say', async () => {
    const url = await newDatabase();
    const store = await openStore({ url, max: 1 });
    const admin = await newClient(url);
    await store.openSession(newSession());
    await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    // From now on it believes that there is one job, which is active.
    await admin.query('ANALYZE');
    await store.add('q', newJobs(3_000), { caller: 'p', seq: 2 });
    const { jobs } = await store.claim('q', { session: 's', seq: 2, count: 3_000 });
    const read = async (): Promise<number> => {
      // A connection hands in its statistics with a call that comes a second after the last time.
      await sleep(1_100);
      await store.status('q');
      const { rows } = await admin.query<{ n: number }>(
        // Not the waiting list, at whose head lies what was claimed before.
        `SELECT sum(idx_tup_read)::int AS n FROM pg_stat_user_indexes
         WHERE schemaname = 'holdfast' AND relname = 'jobs' AND indexrelname <> 'jobs_waiting'`,
      );
      return rows[0]?.n ?? 0;
    };
    const [one, two, three, four] = jobs;
    if (!one || !two || !three || !four) return expect.fail('there are jobs');
    const before = await read();
    await store.locks('q', { jobIds: [one.id] });
    await store.extend('q', [{ jobId: one.id, token: one.token, durationMs: 1_000 }]);
    await store.settle('q', [completed(one)], { caller: 's', seq: 3 });
    await store.settle('q', [{ ...completed(two), keep: { count: 0 } } as ReturnType<typeof completed>], { caller: 's', seq: 4 });
    await store.write('q', [{ jobId: three.id, token: three.token, kind: 'progress', progress: '1' }]);
    await store.change('q', [three.id], { kind: 'revoke', reason: 'test' });
    await store.change('q', [three.id], { kind: 'priority', priority: 1, lifo: false });
    await store.change('q', [three.id], { kind: 'remove' });
    await store.claim('q', { session: 's', seq: 5, count: 1 });
    await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
    await store.sweep('q', 100);
    await store.jobs('q', [four.id]);
    await store.openSession(newSession({ id: 'other' }));
    await store.closeSessions([{ queue: 'q', id: 'other' }], 'closed');
    expect((await read()) - before).toBeLessThan(200);
  });
});

describe('counts and events on PostgreSQL', () => {
  test('are exact, whether and by whichever process the journal is applied', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const admin = await newClient(url);
    await store.openSession(newSession());
    for (let seq = 1; seq <= 60; seq += 1) {
      await store.add('q', [newJob(), newJob({ priority: 1 }), newJob({ delayMs: 60_000 })], { caller: 'p', seq });
      const { jobs } = await store.claim('q', { session: 's', seq: 2 * seq, count: 2 });
      await store.settle('q', jobs.slice(0, 1).map(completed), { caller: 's', seq: 2 * seq + 1 });
      const { counts } = await store.status('q');
      expect(counts).toEqual({
        'waiting-children': 0,
        waiting: 0,
        prioritized: 0,
        delayed: seq,
        active: seq,
        completed: seq,
        failed: 0,
      });
      if (seq % 10 === 0) await store.events('q', 0, 1);
    }
    await store.events('q', 0, 1);
    const { rows } = await admin.query('SELECT count(*)::int AS journal FROM holdfast.journal');
    expect(rows).toEqual([{ journal: 0 }]);
    expect((await store.status('q')).counts).toMatchObject({ delayed: 60, active: 60, completed: 60 });
  });

  test('are applied and trimmed although nothing reads them', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const admin = await newClient(url);
    for (let seq = 1; seq <= 30; seq += 1) await store.add('q', newJobs(1_000), { caller: 'p', seq });
    await store.sweep('q', 1);
    const { rows } = await admin.query<{ rows: number; first: number }>(
      'SELECT count(*)::int AS rows, min(first)::int AS first FROM holdfast.events',
    );
    expect(rows[0]?.first).toBeGreaterThan(60_000 - 10_000 - 2_000 - 2_000);
    expect((await store.status('q')).counts.waiting).toBe(30_000);
  });
});

describe('old callers on PostgreSQL', () => {
  test('are forgotten after ten minutes, but not while their session is open', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const admin = await newClient(url);
    await store.openSession(newSession());
    await store.add('q', newJobs(2), { caller: 'p', seq: 1 });
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    await admin.query(
      'UPDATE holdfast.callers SET used_at = used_at - 590000, look_at = 0; UPDATE holdfast.holdfast_schema SET pruned_at = 0',
    );
    await store.sweep('q', 1);
    expect((await admin.query('SELECT id FROM holdfast.callers ORDER BY id')).rows).toEqual([{ id: 'p' }, { id: 's' }]);
    await admin.query(
      'UPDATE holdfast.callers SET used_at = used_at - 20000, look_at = 0; UPDATE holdfast.holdfast_schema SET pruned_at = 0',
    );
    await store.sweep('q', 1);
    expect((await admin.query('SELECT id FROM holdfast.callers ORDER BY id')).rows).toEqual([{ id: 's' }]);
  });
});
