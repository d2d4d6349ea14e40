import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/runtime/clock.js';
import { Rules } from '../../../src/store/sqlite/state/rules.js';
import { StoreClock } from '../../../src/store/sqlite/state/clock.js';
import { Committer } from '../../../src/store/sqlite/state/commit.js';
import { type Database as Seam, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { toStoreError } from '../../../src/store/sqlite/driver/errors.js';
import { Groups } from '../../../src/store/sqlite/state/groups.js';
import { KeyGroups } from '../../../src/store/sqlite/state/key-groups.js';
import { MinuteCounts } from '../../../src/store/sqlite/state/minute-counts.js';
import { QueueTable } from '../../../src/store/sqlite/state/queue-state.js';
import { afterwards, newFile, newFolder, newJob, openStore } from './support.js';

/** A committer on a real database whose next COMMIT fails with an error of SQLite's. */
async function failingCommitter(): Promise<{ committer: Committer; failNext(code: string): void }> {
  const file = newFile();
  await (await openStore({ path: file })).close();
  const driver = await loadDriver();
  const db = driver.open(file);
  let failure: string | undefined;
  const failing: Seam = {
    prepare(sql) {
      const statement = db.prepare<never>(sql);
      if (sql !== 'COMMIT') return statement;
      const run = (): number => {
        const code = failure;
        failure = undefined;
        if (code !== undefined) throw Object.assign(new Error('on command'), { code });
        return statement.run();
      };
      return { ...statement, run, get: () => undefined, all: () => [] };
    },
    exec: (sql) => db.exec(sql),
    close: () => db.close(),
    get inTransaction() {
      return db.inTransaction;
    },
  };
  const table = new QueueTable(failing, {
    keyGroups: new KeyGroups(failing),
    groups: new Groups(failing, new Rules(failing)),
    minutes: new MinuteCounts(failing),
  });
  const clock = new StoreClock(systemClock, 0);
  const committer = new Committer({ driver, db: failing, path: file, clock, table, busyTimeoutMs: 1_000, onCommit: () => {} });
  afterwards(() => committer.close());
  return { committer, failNext: (code) => (failure = code) };
}

describe('a SQLite store with a failing file', () => {
  it('rejects all calls of a commit that fails, writes nothing, and the next commit succeeds', async () => {
    const { committer, failNext } = await failingCommitter();
    failNext('SQLITE_FULL');
    const refused = await Promise.allSettled(['a', 'b'].map((name) => committer.write((tx) => tx.queue(name).queue)));
    for (const result of refused) {
      expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'STORE_FULL', retryable: true });
    }
    expect(await committer.write((tx) => [tx.find('a'), tx.find('b')])).toEqual([undefined, undefined]);
    expect(await committer.write((tx) => tx.queue('a').name)).toBe('a');
  });

  it('retries a commit that finds the file busy, without an error', async () => {
    const { committer, failNext } = await failingCommitter();
    failNext('SQLITE_BUSY');
    expect(await committer.write((tx) => tx.queue('a').name)).toBe('a');
  });

  it('maps the errors of SQLite to codes', () => {
    const codeOf = (code: string): [string, boolean] => {
      const { code: ours, retryable } = toStoreError(Object.assign(new Error('x'), { code }), 'jobs.db');
      return [ours, retryable];
    };
    expect(codeOf('SQLITE_BUSY')).toEqual(['STORE_BUSY', true]);
    expect(codeOf('SQLITE_BUSY_SNAPSHOT')).toEqual(['STORE_BUSY', true]);
    expect(codeOf('SQLITE_LOCKED')).toEqual(['STORE_BUSY', true]);
    expect(codeOf('SQLITE_FULL')).toEqual(['STORE_FULL', true]);
    expect(codeOf('SQLITE_READONLY_DIRECTORY')).toEqual(['STORE_READONLY', false]);
    expect(codeOf('SQLITE_CANTOPEN')).toEqual(['STORE_UNAVAILABLE', true]);
    expect(codeOf('SQLITE_IOERR_WRITE')).toEqual(['STORE_UNAVAILABLE', true]);
    expect(codeOf('SQLITE_NOTADB')).toEqual(['STORE_FOREIGN', false]);
    expect(codeOf('SQLITE_CORRUPT_INDEX')).toEqual(['STORE_FAILED', false]);
    expect(codeOf('SQLITE_SOMETHING_NEW')).toEqual(['STORE_FAILED', false]);
    expect(toStoreError(new TypeError('ours'), 'jobs.db').code).toBe('STORE_FAILED');
  });

  const canMount = spawnSync('unshare', ['-Urm', 'true']).status === 0;
  it.skipIf(!canMount)(
    `on a full disk: STORE_FULL, nothing half-written, works again when there is room${canMount ? '' : ' (unshare -Urm is not allowed here)'}`,
    () => {
      const folder = newFolder();
      const program = fileURLToPath(new URL('full-disk.mjs', import.meta.url));
      const script = `mount -t tmpfs -o size=2m tmpfs "${folder}" && exec "${process.execPath}" "${program}" "${folder}"`;
      const report = JSON.parse(execFileSync('unshare', ['-Urm', 'sh', '-c', script], { encoding: 'utf8' })) as Record<
        string,
        unknown
      >;
      expect(report).toMatchObject({
        code: 'STORE_FULL',
        retryable: true,
        kept: report['acknowledged'],
        after: 'added',
        integrity: 'ok',
      });
      expect(report['acknowledged']).toBeGreaterThan(0);
    },
  );

  it('refuses writes to a deleted file', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    fs.rmSync(file);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: 2 })).rejects.toMatchObject({
      code: 'STORE_GONE',
      retryable: false,
      message: expect.stringMatching(/deleted or replaced/),
    });
    await expect(store.add('q', [newJob()], { caller: 'p', seq: 3 })).rejects.toMatchObject({ code: 'STORE_GONE' });
  });

  it('reports a replaced file as gone', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const other = path.join(newFolder(), 'other.db');
    await (await openStore({ path: other })).close();
    fs.renameSync(other, file);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: 1 })).rejects.toMatchObject({ code: 'STORE_GONE' });
  });

  it.each(['by its name', 'by a link'])(
    'acknowledges nothing more after its log was deleted while the store had it open, opened %s',
    async (how) => {
      const file = newFile();
      const link = path.join(newFolder(), 'link.db');
      await (await openStore({ path: file })).close();
      fs.symlinkSync(file, link);
      const store = await openStore({ path: how === 'by a link' ? link : file });
      await store.add('q', [newJob()], { caller: 'p', seq: 1 });
      fs.rmSync(`${file}-wal`);
      await expect(store.add('q', [newJob()], { caller: 'p', seq: 2 })).rejects.toMatchObject({
        code: 'STORE_GONE',
        message: expect.stringContaining('-wal'),
      });
    },
  );

  it('reports to a watcher that the file is gone', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const unwatch = store.watch('q', () => {});
    fs.rmSync(file);
    await expect
      .poll(() => store.claim('q', { session: 's', seq: 1, count: 1 }).catch(({ code }) => code as string), { timeout: 5_000 })
      .toBe('STORE_GONE');
    unwatch();
  });

  it('lets calls wait, but not the event loop, while another program holds the write lock', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const foreign = new Database(file);
    afterwards(() => foreign.close());
    foreign.exec('BEGIN IMMEDIATE');
    const before = performance.eventLoopUtilization();
    const adding = store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await sleep(1_000);
    const { utilization } = performance.eventLoopUtilization(before);
    foreign.exec('COMMIT');
    expect(await adding).toEqual([{ id: '1', status: 'added' }]);
    expect(utilization).toBeLessThan(0.25);
  });

  it('rejects with STORE_BUSY after busyTimeoutMs, without any change, and a later call succeeds', async () => {
    const file = newFile();
    const store = await openStore({ path: file, busyTimeoutMs: 100 });
    const foreign = new Database(file);
    afterwards(() => foreign.close());
    foreign.exec('BEGIN IMMEDIATE');
    await expect(store.add('q', [newJob()], { caller: 'p', seq: 1 })).rejects.toMatchObject({
      code: 'STORE_BUSY',
      retryable: true,
      message: expect.stringMatching(/Another program holds/),
    });
    foreign.exec('ROLLBACK');
    expect((await store.status('q')).counts.waiting).toBe(0);
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toHaveLength(1);
  });

  /** Another connection that always holds the write lock, but commits again and again, as many processes do together. */
  async function writeInTurn(file: string, ms: number): Promise<void> {
    const others = new Database(file);
    afterwards(() => others.close());
    others.exec('CREATE TABLE IF NOT EXISTS theirs (a)');
    others.exec('BEGIN IMMEDIATE');
    for (const end = performance.now() + ms; performance.now() < end; ) {
      await sleep(20);
      others.exec('INSERT INTO theirs VALUES (1); COMMIT; BEGIN IMMEDIATE');
    }
    others.exec('COMMIT');
  }

  it('lets calls wait longer than busyTimeoutMs while others write in turn', async () => {
    const file = newFile();
    const store = await openStore({ path: file, busyTimeoutMs: 400 });
    const writing = writeInTurn(file, 1_200);
    const added = await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await writing;
    expect(added).toEqual([{ id: '1', status: 'added' }]);
  });

  it('opens after longer than busyTimeoutMs while others write in turn', async () => {
    const file = newFile();
    await (await openStore({ path: file })).close();
    const db = new Database(file);
    // The clock of another boot: the store must write before it is open.
    db.exec("UPDATE clock SET boot = 'another'");
    db.close();
    const writing = writeInTurn(file, 1_200);
    const store = await openStore({ path: file, busyTimeoutMs: 400 });
    await writing;
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toHaveLength(1);
  });
});
