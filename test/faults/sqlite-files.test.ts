// The log of a SQLite store, or the index of the log, is deleted under a process; another process opens the store and writes. However
// the two end, in whichever order: the database is whole, and has what was acknowledged and was not in the deleted file.
import fs from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { newFile, newJob, StoreProcess } from '../engines/sqlite/support.js';

const BEFORE = 10;
const AFTER = 30;

/** Adds jobs one by one, so that each is a commit. Returns the ids. */
async function addJobs(store: StoreProcess, caller: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${caller}-${n}`);
  for (const [n, id] of ids.entries()) {
    await store.call('add', 'q', [newJob({ id, data: JSON.stringify('x'.repeat(3_000)) })], { caller, seq: n + 1 });
  }
  return ids;
}

async function opened(file: string): Promise<StoreProcess> {
  const store = await StoreProcess.start(file);
  await store.call('open');
  return store;
}

function remove(file: string, endings: string[]): void {
  for (const ending of endings) fs.rmSync(`${file}-${ending}`);
}

/** What a program finds that opens the file when all others have ended. */
function found(file: string): { check: unknown; ids: unknown[] } {
  const db = new Database(file);
  try {
    const check = db.pragma('integrity_check', { simple: true });
    return { check, ids: db.prepare('SELECT id FROM jobs ORDER BY rowid').pluck().all() };
  } catch (error) {
    return { check: String(error), ids: [] };
  } finally {
    db.close();
  }
}

/** Writes the log back into the database and begins it anew, as any program that uses the file may do. */
function copyBack(file: string): void {
  const foreign = new Database(file);
  foreign.pragma('wal_checkpoint(RESTART)');
  foreign.close();
}

type End = (store: StoreProcess) => Promise<void>;
type Name = 'early' | 'late';

const ENDS: Record<string, End> = {
  closes: (store) => store.end(),
  'ends without a close': (store) => store.leave(),
  'is killed': (store) => store.kill(),
};

/** Each order in which the two end, with each end of the process under which the files vanish. */
const ORDERS: [Name, string, Name, string][] = Object.keys(ENDS).flatMap((end): [Name, string, Name, string][] => [
  ['early', end, 'late', 'closes'],
  ['late', 'closes', 'early', end],
]);
ORDERS.push(['early', 'closes', 'late', 'is killed'], ['late', 'is killed', 'early', 'closes']);

async function endBoth(order: (typeof ORDERS)[number], stores: Record<Name, StoreProcess>): Promise<void> {
  const [first, firstEnd, second, secondEnd] = order;
  await ENDS[firstEnd]?.(stores[first]);
  await ENDS[secondEnd]?.(stores[second]);
}

describe('a SQLite store whose log or index is deleted under a process', () => {
  it.each(ORDERS)(
    'keeps every acknowledged job when the -shm was deleted, the %s process %s and then the %s one %s',
    async (...order) => {
      const file = newFile();
      const early = await opened(file);
      const acknowledged = await addJobs(early, 'early', BEFORE);
      remove(file, ['shm']);
      const late = await opened(file);
      acknowledged.push(...(await addJobs(late, 'late', AFTER)));
      copyBack(file);
      acknowledged.push(...(await addJobs(late, 'later', AFTER)));
      await expect(addJobs(early, 'gone', 1)).rejects.toMatchObject({ code: 'STORE_GONE' });
      await endBoth(order, { early, late });
      expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
    },
  );

  it.each(ORDERS.filter(([, , last, end]) => last === 'early' && end !== 'is killed'))(
    'keeps the jobs of the late process when both were deleted, the %s process %s and then the %s one %s',
    async (...order) => {
      const file = newFile();
      const early = await opened(file);
      await addJobs(early, 'early', BEFORE);
      remove(file, ['wal', 'shm']);
      const late = await opened(file);
      const acknowledged = await addJobs(late, 'late', AFTER);
      await expect(addJobs(early, 'gone', 1)).rejects.toMatchObject({ code: 'STORE_GONE' });
      await endBoth(order, { early, late });
      expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
    },
  );

  it('keeps every acknowledged job when the -shm vanishes under a process that never looks again and closes', async () => {
    const file = newFile();
    const early = await opened(file);
    const acknowledged = await addJobs(early, 'early', BEFORE);
    remove(file, ['shm']);
    const late = await opened(file);
    acknowledged.push(...(await addJobs(late, 'late', AFTER)));
    copyBack(file);
    acknowledged.push(...(await addJobs(late, 'later', AFTER)));
    await late.end();
    await early.end();
    expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
  });

  it.each(['closes', 'ends without a close'])(
    'keeps every acknowledged job when the -shm vanished under two processes, and each of three %s',
    async (end) => {
      const file = newFile();
      const acknowledged: string[] = [];
      const stores: StoreProcess[] = [];
      for (const name of ['one', 'two', 'three']) {
        if (stores.length > 0) remove(file, ['shm']);
        const store = await opened(file);
        stores.push(store);
        acknowledged.push(...(await addJobs(store, name, AFTER)));
      }
      for (const store of stores.reverse()) await ENDS[end]?.(store);
      expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
    },
  );

  it('keeps every acknowledged job when the late process has begun a new log while the early one was stopped before a checkpoint', async () => {
    const file = newFile();
    const early = await opened(file);
    // As many pages as the store copies back as soon as it has rested.
    const big = newJob({ id: 'big', data: JSON.stringify('x'.repeat(3_000_000)) });
    await early.call('add', 'q', [big], { caller: 'early', seq: 1 });
    early.signal('SIGSTOP');
    remove(file, ['shm']);
    const late = await opened(file);
    const acknowledged = ['big', ...(await addJobs(late, 'late', AFTER))];
    copyBack(file);
    acknowledged.push(...(await addJobs(late, 'later', AFTER)));
    early.signal('SIGCONT');
    // Its timers come before its answer.
    await early.call('queues').catch(() => undefined);
    await early.kill();
    await late.end();
    expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
  });

  it.each(['wal', 'shm', 'wal and shm'])(
    'keeps every acknowledged job when the process closes before another one starts (%s)',
    async (endings) => {
      const file = newFile();
      const store = await opened(file);
      const acknowledged = await addJobs(store, 'early', BEFORE);
      remove(file, endings.split(' and '));
      await expect(addJobs(store, 'gone', 1)).rejects.toMatchObject({ code: 'STORE_GONE' });
      await store.end();
      const { check, ids } = found(file);
      expect(check).toBe('ok');
      expect(ids).toEqual(expect.arrayContaining(acknowledged));
    },
  );

  it('keeps every acknowledged job when the -wal was deleted, another process could not open the file, and then the first one closes', async () => {
    const file = newFile();
    const store = await opened(file);
    const acknowledged = await addJobs(store, 'early', BEFORE);
    remove(file, ['wal']);
    await expect(opened(file)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await store.end();
    expect(found(file)).toEqual({ check: 'ok', ids: acknowledged });
  });

  it('(N) loses jobs that were acknowledged into a -wal that was deleted, when its process is killed', async () => {
    const file = newFile();
    const store = await opened(file);
    await addJobs(store, 'early', BEFORE);
    remove(file, ['wal', 'shm']);
    await store.kill();
    expect(found(file)).toEqual({ check: 'ok', ids: [] });
  });
});
