import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/testing/index.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const unique = (ttlMs?: number) => newJob({ deduplication: { id: 'd', ...(ttlMs !== undefined && { ttlMs }) } });

function look(file: string): Database.Database {
  const db = new Database(file);
  afterwards(() => db.close());
  return db;
}

describe('entries of deduplication on SQLite', () => {
  it.each([
    ['finished', 'UPDATE jobs SET state = 4'],
    ['removed', 'DELETE FROM jobs'],
  ])('do not count when their owner was %s without them', async (_, change) => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [unique()], { caller: 'p', seq: 1 });
    const db = look(file);
    db.exec(change);
    expect(db.prepare('SELECT job FROM dedup').pluck().all()).toEqual(['1']);
    expect((await store.status('q', { deduplication: ['d'] })).deduplication).toEqual([undefined]);
    expect(await store.add('q', [unique()], { caller: 'p', seq: 2 })).toEqual([{ id: '2', status: 'added' }]);
    expect(db.prepare('SELECT job FROM dedup').pluck().all()).toEqual(['2']);
  });

  it('are deleted by sweeps when their time has passed, a bounded number in each', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    const jobs = Array.from({ length: 25 }, (_, n) => newJob({ deduplication: { id: `d${n}`, ttlMs: n < 5 ? 9000 : 1000 } }));
    await store.add('q', jobs, { caller: 'p', seq: 1 });
    const count = look(file).prepare('SELECT count(*) FROM dedup').pluck();
    expect((await store.sweep('q', 10)).more).toBe(false);
    expect(count.get()).toBe(25);
    clock.advance(1001);
    expect((await store.sweep('q', 10)).more).toBe(true);
    expect(count.get()).toBe(15);
    expect((await store.sweep('q', 10)).more).toBe(false);
    expect(count.get()).toBe(5);
  });

  it('leave plain jobs without marks and extras', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession({ id: 's' }));
    await store.add('q', [newJob(), unique()], { caller: 'p', seq: 1 });
    expect(look(file).prepare('SELECT marks, extras FROM jobs ORDER BY job').raw().all()).toEqual([
      [0, null],
      [8, '{"d":"d"}'],
    ]);
  });
});
