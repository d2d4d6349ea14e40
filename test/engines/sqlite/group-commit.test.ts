import { describe, expect, it, vi } from 'vitest';
import Database from 'better-sqlite3';
import { newFile, newJob, newSession, openStore, afterwards } from './support.js';

/** Counts commits as another connection sees them. */
function commitCounter(file: string): () => number {
  const db = new Database(file);
  afterwards(() => db.close());
  const rows = (): number => (db.prepare('SELECT count(*) AS n FROM events').get() as { n: number }).n;
  const before = rows();
  return () => rows() - before;
}

describe('group commit on SQLite', () => {
  it('puts all writes of one turn of the loop into one transaction, in the order of the calls', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const commits = commitCounter(file);
    // Time stands still: a batch that takes long, as on a machine that does other things too, is cut on purpose.
    const time = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    afterwards(() => time.mockRestore());
    const adds = Array.from({ length: 50 }, (_, n) => store.add('q', [newJob({ data: String(n) })], { caller: `p${n}`, seq: 1 }));
    const ids = (await Promise.all(adds)).flat().map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 50 }, (_, n) => String(n + 1)));
    expect(commits()).toBe(1);
  });

  it('makes another transaction for writes of a later turn', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const commits = commitCounter(file);
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await store.add('q', [newJob()], { caller: 'p', seq: 2 });
    expect(commits()).toBe(2);
  });

  it('commits a lone write within one turn of the loop', async () => {
    const store = await openStore({ path: newFile() });
    let added = false;
    void store.add('q', [newJob()], { caller: 'p', seq: 1 }).then(() => (added = true));
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.resolve();
    expect(added).toBe(true);
  });

  it('lets later operations of a turn see what earlier ones wrote', async () => {
    const store = await openStore({ path: newFile() });
    const [, , reply] = await Promise.all([
      store.openSession(newSession()),
      store.add('q', [newJob()], { caller: 'p', seq: 1 }),
      store.claim('q', { session: 's', seq: 1, count: 5 }),
    ]);
    expect(reply.jobs.map(({ id }) => id)).toEqual(['1']);
  });

  it('lets an operation fail alone, and applies none twice', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 'taken' }));
    const [before, refused, after] = await Promise.allSettled([
      store.add('q', [newJob({ id: 'before' })], { caller: 'a', seq: 1 }),
      store.openSession(newSession({ id: 'taken' })),
      store.add('q', [newJob({ id: 'after' })], { caller: 'b', seq: 1 }),
    ]);
    expect([before.status, refused.status, after.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((refused as PromiseRejectedResult).reason).toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('taken'),
    });
    const { events } = await store.events('q', 0, 100);
    expect(events.map(({ name, jobId }) => `${name} ${jobId}`)).toEqual([
      'added before',
      'waiting before',
      'added after',
      'waiting after',
    ]);
    expect((await store.status('q')).counts.waiting).toBe(2);
  });

  it('splits a turn that would hold the write lock for long', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const commits = commitCounter(file);
    const jobs = Array.from({ length: 100 }, () => newJob({ data: JSON.stringify('x'.repeat(2_000)) }));
    await Promise.all(Array.from({ length: 100 }, (_, n) => store.add('q', jobs, { caller: `p${n}`, seq: 1 })));
    expect((await store.status('q')).counts.waiting).toBe(10_000);
    expect(commits()).toBeGreaterThan(1);
  });

  it('finishes calls in flight when it is closed', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const adding = store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await store.close();
    expect(await adding).toEqual([{ id: '1', status: 'added' }]);
    expect((await (await openStore({ path: file })).status('q')).counts.waiting).toBe(1);
  });

  it('does not take the write lock when there is nothing to claim, to sweep or to suspect', async () => {
    const file = newFile();
    const store = await openStore({ path: file, busyTimeoutMs: 50 });
    await store.openSession(newSession());
    await store.add('q', [newJob({ delayMs: 60_000 })], { caller: 'p', seq: 1 });
    const other = new Database(file);
    afterwards(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    expect((await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs).toEqual([]);
    expect(await store.sweep('q', 10)).toEqual({ stalled: [], failed: [], more: false });
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await expect(store.renew([{ queue: 'q', id: 's', acked: 0 }])).rejects.toMatchObject({ code: 'STORE_BUSY' });
    other.exec('ROLLBACK');
  });
});
