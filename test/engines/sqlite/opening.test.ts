import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import type { Database as Connection } from '../../../src/store/sqlite/driver/load.js';
import { SqliteStore } from '../../../src/store/sqlite/index.js';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/state/schema.js';
import { newFile, newFolder, newJob, openStore, StoreProcess } from './support.js';

/** A file with everything that lies beside it, as bytes. */
function snapshot(folder: string): Record<string, string> {
  return Object.fromEntries(
    fs.readdirSync(folder).map((name) => [name, fs.readFileSync(path.join(folder, name)).toString('base64')]),
  );
}

async function expectRefused(file: string, code: string, message: RegExp): Promise<void> {
  const store = new SqliteStore({ path: file, busyTimeoutMs: 200 });
  await expect(store.open()).rejects.toMatchObject({ name: 'HoldfastError', code, message: expect.stringMatching(message) });
  await store.close();
}

describe('opening a SQLite store', () => {
  it('creates the file, and finds its data again', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.open();
    await store.add('q', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    await store.close();
    const again = await openStore({ path: file });
    expect((await again.jobs('q', ['kept'])).jobs[0]?.id).toBe('kept');
  });

  it('accepts an empty file', async () => {
    const file = newFile();
    fs.writeFileSync(file, '');
    const store = await openStore({ path: file });
    expect((await store.status('q')).counts.waiting).toBe(0);
  });

  it('is described by plain data with an absolute path', () => {
    const store = new SqliteStore({ path: 'some/jobs.db', synchronous: 'normal' });
    expect(store.describe()).toMatchObject({
      engine: 'sqlite',
      options: { path: path.resolve('some/jobs.db'), synchronous: 'normal' },
    });
    expect(structuredClone(store.describe())).toEqual(store.describe());
  });

  it('names a folder that does not exist, and does not make it', async () => {
    const folder = path.join(newFolder(), 'missing');
    await expectRefused(path.join(folder, 'jobs.db'), 'STORE_UNAVAILABLE', /folder .*missing/);
    expect(fs.existsSync(folder)).toBe(false);
  });

  it('opens at a later try when the folder is there by then', async () => {
    const folder = path.join(newFolder(), 'late');
    const store = new SqliteStore({ path: path.join(folder, 'jobs.db') });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    fs.mkdirSync(folder);
    await store.open();
    await store.close();
  });

  it('refuses a folder in the place of the file', async () => {
    await expectRefused(newFolder(), 'STORE_UNAVAILABLE', /cannot be read/);
  });

  it('refuses a file that is not a database, and does not touch it', async () => {
    for (const content of ['short', 'no database at all, but long enough for a header\n'.repeat(10)]) {
      const folder = newFolder();
      fs.writeFileSync(path.join(folder, 'jobs.db'), content);
      const before = snapshot(folder);
      await expectRefused(path.join(folder, 'jobs.db'), 'STORE_FOREIGN', /not a database of Holdfast/);
      expect(snapshot(folder)).toEqual(before);
    }
  });

  it('refuses the database of another program, and does not touch it or its WAL', async () => {
    const folder = newFolder();
    const file = path.join(folder, 'jobs.db');
    const theirs = new Database(file);
    theirs.pragma('journal_mode = WAL');
    theirs.exec("CREATE TABLE jobs (id); INSERT INTO jobs VALUES ('precious')");
    // Copied while it is open: the copy has a WAL that was not brought into the database yet.
    const copy = newFolder();
    for (const name of ['jobs.db', 'jobs.db-wal']) fs.copyFileSync(path.join(folder, name), path.join(copy, name));
    theirs.close();
    const before = snapshot(copy);
    await expectRefused(path.join(copy, 'jobs.db'), 'STORE_FOREIGN', /not a database of Holdfast/);
    expect(snapshot(copy)).toEqual(before);
  });

  it('refuses a newer schema, and does not touch it', async () => {
    const file = newFile();
    await (await openStore({ path: file })).close();
    const db = new Database(file);
    db.pragma(`user_version = ${SCHEMA_VERSION + 1}`);
    db.pragma('journal_mode = DELETE');
    db.close();
    const before = fs.readFileSync(file);
    await expectRefused(file, 'STORE_NEWER', /Upgrade the holdfast package/);
    expect(fs.readFileSync(file).equals(before)).toBe(true);
  });

  it('refuses a file that may only be read', async () => {
    const folder = newFolder();
    const file = path.join(folder, 'jobs.db');
    await (await openStore({ path: file })).close();
    fs.chmodSync(file, 0o444);
    fs.chmodSync(folder, 0o555);
    // Root may write everywhere, so it becomes nobody for a moment.
    const root = process.geteuid?.() === 0;
    if (root) process.seteuid?.(65_534);
    try {
      await expectRefused(file, 'STORE_READONLY', /permission/);
    } finally {
      if (root) process.seteuid?.(0);
      fs.chmodSync(folder, 0o755);
    }
  });

  it('refuses invalid options by name', () => {
    const make = (options: object) => () => new SqliteStore({ path: 'jobs.db', ...options } as { path: string });
    expect(make({ path: '' })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'path' }));
    expect(make({ synchronous: 'off' })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'synchronous' }));
    for (const busyTimeoutMs of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5']) {
      expect(make({ busyTimeoutMs })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'busyTimeoutMs' }));
    }
    expect(make({ busyTimeoutMs: 0 })).not.toThrow();
  });

  it('syncs every commit to the disk by default', async () => {
    vi.resetModules();
    const opened: Connection[] = [];
    vi.doMock('../../../src/store/sqlite/driver/load.js', async (importOriginal) => {
      const driver = await (await importOriginal<typeof import('../../../src/store/sqlite/driver/load.js')>()).loadDriver();
      const open: typeof driver.open = (...args) => {
        opened.push(driver.open(...args));
        return opened.at(-1) as Connection;
      };
      return { loadDriver: async () => ({ ...driver, open }) };
    });
    try {
      const { SqliteStore: Store } = await import('../../../src/store/sqlite/index.js');
      for (const [options, code] of [
        [{}, 2],
        [{ synchronous: 'normal' }, 1],
      ] as const) {
        const store = new Store({ path: newFile(), ...options });
        await store.open();
        expect(opened.at(-1)?.prepare('PRAGMA synchronous').get()).toEqual([code]);
        expect(opened.at(-1)?.prepare('PRAGMA journal_mode').get()).toEqual(['wal']);
        await store.close();
      }
    } finally {
      vi.doUnmock('../../../src/store/sqlite/driver/load.js');
      vi.resetModules();
    }
  });

  it('is created once when several processes start at the same moment', async () => {
    const file = newFile();
    const processes = await Promise.all(Array.from({ length: 5 }, () => StoreProcess.start(file)));
    await Promise.all(processes.map((one) => one.call('open')));
    await Promise.all(
      processes.map((one, n) => one.call('add', 'q', [newJob({ id: `from-${n}` })], { caller: `p${n}`, seq: 1 })),
    );
    const store = await openStore({ path: file });
    expect((await store.status('q')).counts.waiting).toBe(5);
    const db = new Database(file, { readonly: true });
    expect(db.pragma('user_version', { simple: true })).toBe(SCHEMA_VERSION);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    db.close();
  });

  it('rejects every verb once it is closed, and a second close is fine', async () => {
    const store = await openStore({ path: newFile() });
    await store.close();
    await store.close();
    await expect(store.status('q')).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(store.add('q', [newJob()], { caller: 'p', seq: 1 })).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });
});
