import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { SqliteStore } from '../../../src/store/sqlite/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const completed = async (store: SqliteStore) =>
  (await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } })).metrics;

/** Adds jobs, claims them and completes them, each with a commit of its own. */
async function complete(store: SqliteStore, seq: number, count = 1): Promise<void> {
  const jobs = Array.from({ length: count }, () => newJob());
  await store.add('q', jobs, { caller: 'p', seq });
  const claimed = await store.claim('q', { session: 's', seq, count });
  const outcomes = claimed.jobs.map(({ id, token }) => ({ kind: 'completed' as const, jobId: id, token, value: '1', keep: {} }));
  await store.settle('q', outcomes);
}

describe('metrics on SQLite', () => {
  it('keep the count of all jobs when no whole minute is kept', async () => {
    const clock = new ManualClock();
    const store = await openStore({ path: newFile(), clock });
    await store.openSession(newSession({ id: 's', durationMs: 1_000_000 }));
    await store.configure('q', { metrics: { points: 0 } });
    for (const seq of [1, 2, 3]) {
      await complete(store, seq, seq);
      clock.advance(60_000);
    }
    expect(await completed(store)).toMatchObject({ count: 6, current: { count: 3 }, points: [], total: 0 });
  });

  it('count once what was rolled back and written again', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 's' }));
    await store.configure('q', { metrics: { points: 5 } });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    const outcomes = jobs.map(({ id, token }) => ({ kind: 'completed' as const, jobId: id, token, value: '1', keep: {} }));
    // Opening a session twice fails, so the commit that both share is rolled back and the settle runs again.
    const [settled, refused] = await Promise.allSettled([
      store.settle('q', outcomes),
      store.openSession(newSession({ id: 's' })),
    ]);
    expect([settled.status, refused.status]).toEqual(['fulfilled', 'rejected']);
    expect((await completed(store))?.count).toBe(1);
  });

  it('write no row while the queue does not count', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession({ id: 's' }));
    await complete(store, 1, 3);
    const db = new Database(file, { readonly: true });
    afterwards(() => db.close());
    const rows = () => db.prepare('SELECT (SELECT count(*) FROM metrics), rules FROM queues').raw().get();
    expect(rows()).toEqual([0, null]);
    await store.configure('q', { metrics: { points: 1 } });
    await complete(store, 2, 3);
    expect(rows()).toEqual([1, '{"metrics":{"points":1}}']);
  });
});
