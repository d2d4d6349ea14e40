import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import type { Keep } from '../../../src/job/outcome.js';
import { EVENTS_KEPT } from '../../../src/store/contract/index.js';
import type { SqliteStore } from '../../../src/store/sqlite/index.js';
import { ManualClock } from '../../../src/testing/manual-clock.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';

function count(file: string, what: string): number {
  return ask(file, `SELECT count(*) AS n FROM ${what}`);
}

/** How many commits have changed the only queue. */
function commitsIn(file: string): number {
  return ask(file, 'SELECT version AS n FROM queues');
}

function ask(file: string, sql: string): number {
  const db = new Database(file, { readonly: true });
  const { n } = db.prepare(sql).get() as { n: number };
  db.close();
  return n;
}

/** Finishes `jobs` jobs in calls of 500. */
async function finish(store: SqliteStore, jobs: number, keep: Keep): Promise<void> {
  for (let left = jobs; left > 0; left -= 500) {
    const size = Math.min(left, 500);
    const id = `s-${Math.random()}`;
    await store.add(
      'q',
      Array.from({ length: size }, () => newJob()),
      { caller: `p-${id}`, seq: 1 },
    );
    await store.openSession(newSession({ id }));
    const { jobs: held } = await store.claim('q', { session: id, seq: 1, count: size });
    await store.settle(
      'q',
      held.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep })),
    );
    await store.closeSessions([{ queue: 'q', id }], 'closed');
  }
}

describe('the housekeeping of the SQLite store', () => {
  it('forgets producers ten minutes after their last call, and workers with their session', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.openSession(newSession({ id: 'long', durationMs: 3_600_000 }));
    await store.openSession(newSession({ id: 'short', durationMs: 3_600_000 }));
    for (const caller of ['a', 'b']) await store.add('q', [newJob()], { caller, seq: 1 });
    for (const session of ['long', 'short']) await store.claim('q', { session, seq: 1, count: 1 });
    await store.closeSessions([{ queue: 'q', id: 'short' }], 'closed');
    expect(count(file, 'callers')).toBe(3);
    clock.advance(9 * 60_000);
    await store.add('q', [newJob()], { caller: 'b', seq: 2 });
    await store.sweep('q', 10);
    expect(count(file, 'callers')).toBe(3);
    clock.advance(2 * 60_000);
    await store.sweep('q', 10);
    expect(count(file, 'callers')).toBe(2);
    clock.advance(10 * 60_000);
    await store.sweep('q', 10);
    expect(count(file, 'callers')).toBe(1);
  });

  it('forgets all old producers in a series of short sweeps, also behind young ones', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.openSession(newSession({ durationMs: 3_600_000 }));
    const db = new Database(file);
    afterwards(() => db.close());
    const insert = db.prepare("INSERT INTO callers (queue, id, seq, usedAt, reply) VALUES (1, ?, 1, ?, '[]')");
    const add = db.transaction((ids: string[], usedAt: number) => ids.forEach((id) => insert.run(id, usedAt)));
    const numbers = Array.from({ length: 5_000 }, (_, n) => String(n).padStart(5, '0'));
    const [session] = await store.sessions('q');
    const now = session?.since ?? 0;
    // Whole chunks of young ones before the old ones.
    add(numbers.slice(0, 2_500), now + 3_600_000);
    add(numbers.slice(2_500), now);
    clock.advance(11 * 60_000);
    let sweeps = 0;
    for (let left = 5_000; left > 2_500; sweeps += 1) {
      expect(sweeps).toBeLessThan(12);
      await store.sweep('q', 10);
      const now = count(file, 'callers');
      expect(left - now).toBeLessThanOrEqual(1_000);
      left = now;
    }
    expect(count(file, 'callers')).toBe(2_500);
  });

  it.each([
    { how: 'closed' as const, stalls: 0 },
    { how: 'crashed' as const, stalls: 1 },
  ])('hands back the jobs of a large session in several transactions, in order ($how)', async ({ how, stalls }) => {
    const file = newFile();
    const store = await openStore({ path: file });
    const ids = Array.from({ length: 5_000 }, (_, n) => `job-${n}`);
    await store.add(
      'q',
      ids.map((id) => newJob({ id })),
      { caller: 'p', seq: 1 },
    );
    await store.openSession(newSession({ id: 'large', maxStalls: 1 }));
    for (let seq = 1; seq <= 5; seq += 1) await store.claim('q', { session: 'large', seq, count: 1_000 });
    const commits = commitsIn(file);
    // Each operation finds that the time of its transaction is over.
    let time = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (time += 20));
    afterwards(() => clock.mockRestore());
    const closing = store.closeSessions([{ queue: 'q', id: 'large' }], how);
    // A store that is closed meanwhile first ends what was begun.
    await Promise.all([closing, store.close()]);
    clock.mockRestore();
    expect(commitsIn(file) - commits).toBe(10);
    const later = await openStore({ path: file });
    expect(await later.sessions('q')).toEqual([]);
    const { jobs: waiting } = await later.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true });
    expect(waiting.map(({ id }) => id)).toEqual(ids);
    expect(new Set(waiting.map(({ stalledCounter }) => stalledCounter))).toEqual(new Set([stalls]));
  });

  it('trims finished jobs in bounded steps until as many are left as are wanted', async () => {
    const store = await openStore({ path: newFile() });
    await finish(store, 2_500, {});
    await finish(store, 1, { count: 100 });
    expect((await store.status('q')).counts.completed).toBe(1_501);
    await finish(store, 1, { count: 100 });
    await finish(store, 1, { count: 100 });
    expect((await store.status('q')).counts.completed).toBe(100);
  });

  it('trims by age in bounded steps, and leaves what is young', async () => {
    const clock = new ManualClock();
    const store = await openStore({ path: newFile(), clock });
    await finish(store, 1_500, {});
    clock.advance(10_000);
    await finish(store, 3, {});
    await finish(store, 1, { ageMs: 5_000 });
    expect((await store.status('q')).counts.completed).toBe(504);
    await finish(store, 1, { ageMs: 5_000 });
    expect((await store.status('q')).counts.completed).toBe(5);
  });

  it('removes the logs of a job with it', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob({ id: 'a' })], { caller: 'p', seq: 1 });
    await store.write('q', [
      { jobId: 'a', kind: 'log', row: 'one' },
      { jobId: 'a', kind: 'log', row: 'two' },
    ]);
    expect(count(file, 'logs')).toBe(2);
    await store.change('q', ['a'], { kind: 'remove' });
    expect(count(file, 'logs')).toBe(0);
  });

  it('writes one row of events per commit, and keeps about as many events as promised', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add(
      'q',
      Array.from({ length: 1_000 }, () => newJob()),
      { caller: 'p', seq: 1 },
    );
    expect(count(file, 'events')).toBe(1);
    for (let seq = 2; seq <= 8; seq += 1) {
      await store.add(
        'q',
        Array.from({ length: 1_000 }, () => newJob()),
        { caller: 'p', seq },
      );
    }
    const { events, last } = await store.events('q', 0, 100_000);
    expect(last).toBe(16_000);
    expect(events.length).toBeGreaterThanOrEqual(EVENTS_KEPT);
    expect(events.length).toBeLessThan(EVENTS_KEPT + 3_000);
  });

  it('leaves neither revocations nor a row of a session that was swept', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
    await store.openSession(newSession({ durationMs: 1_000 }));
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    await store.claim('q', { session: 's', seq: 2, count: 1, timedMs: 30_000 });
    await store.change('q', [jobs[0]?.id ?? ''], { kind: 'revoke', reason: 'test' });
    clock.advance(2_000);
    await store.sweep('q', 10);
    // Still there for the lock that has an end of its own.
    expect([count(file, 'sessions'), await store.sessions('q')]).toEqual([1, []]);
    const lock = (await store.locks('q', { jobIds: ['2'] }))[0];
    expect(lock?.endsInMs).toBe(28_000);
    clock.advance(30_000);
    expect((await store.sweep('q', 10)).stalled).toEqual(['2']);
    expect([count(file, 'sessions'), count(file, 'revocations')]).toEqual([0, 0]);
  });

  it('leaves nothing of a session whose last lock was settled after it was swept', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await store.openSession(newSession({ durationMs: 1_000 }));
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1, timedMs: 30_000 });
    clock.advance(2_000);
    await store.sweep('q', 10);
    const outcomes = jobs.map(({ id, token }) => ({ kind: 'release' as const, jobId: id, token }));
    expect((await store.settle('q', outcomes)).results).toEqual(['done']);
    clock.advance(60_000);
    await store.sweep('q', 10);
    expect(count(file, 'sessions')).toBe(0);
  });

  it('checkpoints its log while it is idle, so that the next call does not have to', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const other = new Database(file);
    afterwards(() => other.close());
    const uncopied = (): number => {
      const [, pages, copied] = other.prepare('PRAGMA wal_checkpoint(NOOP)').raw().get() as [number, number, number];
      return pages - copied;
    };
    const jobs = Array.from({ length: 1_000 }, () => newJob());
    // In one go: there is no pause before the last of them.
    await Promise.all(Array.from({ length: 20 }, (_, n) => store.add('q', jobs, { caller: `p-${n}`, seq: 1 })));
    expect(uncopied()).toBeGreaterThan(500);
    await until('the log is copied', () => uncopied() === 0);
  });

  it('counts in the row of the queue what the tables hold', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await finish(store, 20, {});
    await store.add('q', [newJob(), newJob({ priority: 2 }), newJob({ delayMs: 60_000 })], { caller: 'p', seq: 1 });
    const child = newJob({ delayMs: 60_000, parents: [{ queue: 'q', id: 'parent' }] });
    await store.add('q', [newJob({ id: 'parent', waitsForChildren: true }), child], { caller: 'p', seq: 2 });
    const db = new Database(file, { readonly: true });
    afterwards(() => db.close());
    const rows = db.prepare('SELECT state, priority > 0 AS prior, count(*) AS n FROM jobs GROUP BY 1, 2 ORDER BY 1, 2').all();
    expect(rows).toEqual([
      { state: 1, prior: 0, n: 1 },
      { state: 1, prior: 1, n: 1 },
      { state: 2, prior: 0, n: 2 },
      { state: 4, prior: 0, n: 20 },
      { state: 6, prior: 0, n: 1 },
    ]);
    expect((await store.status('q')).counts).toEqual({
      waiting: 1,
      prioritized: 1,
      delayed: 2,
      active: 0,
      completed: 20,
      failed: 0,
      'waiting-children': 1,
    });
  });
});
