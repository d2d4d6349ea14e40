// The bindings under the SQLite store: which one is taken, and that they all behave the same. Those that this runtime cannot load are left to
// test/runtimes, which runs the whole SQLite suite on other ones.
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue, Worker } from 'holdfast';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DriverName } from '../../../src/store/sqlite/driver/load.js';
import { resultCode } from '../../../src/store/sqlite/driver/result-code.js';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const hasOwn = major > 22 || (major === 22 && minor >= 16);
const HERE: DriverName[] = hasOwn ? ['node:sqlite', '@photostructure/sqlite'] : ['better-sqlite3', '@photostructure/sqlite'];

let folder: string;
beforeEach(() => {
  vi.resetModules();
  folder = fs.mkdtempSync(join(tmpdir(), 'holdfast-driver-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.doUnmock('better-sqlite3');
  fs.rmSync(folder, { recursive: true, force: true });
});

/** A module of its own for each test: the choice is made once. */
async function load(name: string): ReturnType<typeof import('../../../src/store/sqlite/driver/load.js').loadDriver> {
  vi.stubEnv('HOLDFAST_SQLITE_DRIVER', name);
  const { loadDriver } = await import('../../../src/store/sqlite/driver/load.js');
  return loadDriver();
}

function openFiles(): string[] {
  const handles = fs.readdirSync('/proc/self/fd').map((name) => join('/proc/self/fd', name));
  return handles
    .flatMap((handle) => (fs.existsSync(handle) ? [fs.readlinkSync(handle)] : []))
    .filter((file) => file.startsWith(folder));
}

describe.each(HERE)('the driver %s', (name) => {
  it('returns rows as arrays, and the number of changes', async () => {
    const db = (await load(name)).open(join(folder, 'a.db'));
    db.exec('CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL)');
    const insert = db.prepare('INSERT INTO t VALUES (?, ?, ?)');
    expect([insert.run(1, 'one', 1.5), insert.run(1_763_283_744_123_456, null, 2)]).toEqual([1, 1]);
    expect(db.prepare('SELECT a, b, a FROM t WHERE a = ?').get(1)).toEqual([1, 'one', 1]);
    expect(db.prepare('SELECT * FROM t ORDER BY a').all()).toEqual([
      [1, 'one', 1.5],
      [1_763_283_744_123_456, null, 2],
    ]);
    expect(db.prepare('SELECT 1 WHERE 0').get()).toBeUndefined();
    expect(db.prepare('UPDATE t SET b = ? WHERE a = ? RETURNING b').all('changed', 1)).toEqual([['changed']]);
    expect(db.prepare('DELETE FROM t').run()).toBe(2);
    db.close();
  });

  it('does not wait for a lock, and says which error it was', async () => {
    const driver = await load(name);
    const [db, other] = [driver.open(join(folder, 'a.db')), driver.open(join(folder, 'a.db'))];
    const codeOf = (act: () => unknown): string | undefined => {
      try {
        act();
      } catch (error) {
        return resultCode(error);
      }
      return 'nothing was thrown';
    };
    db.exec('CREATE TABLE t (a INTEGER PRIMARY KEY)');
    const begin = other.prepare('BEGIN IMMEDIATE');
    db.exec('BEGIN IMMEDIATE');
    expect([db.inTransaction, other.inTransaction]).toEqual([true, false]);
    expect([codeOf(() => begin.run()), codeOf(() => other.exec('BEGIN IMMEDIATE'))]).toEqual(['SQLITE_BUSY', 'SQLITE_BUSY']);
    const insert = db.prepare('INSERT INTO t VALUES (1)');
    insert.run();
    expect(codeOf(() => insert.run())).toMatch(/^SQLITE_CONSTRAINT/);
    expect(codeOf(() => db.prepare('SELECT nothing').get())).toBe('SQLITE_ERROR');
    db.exec('COMMIT');
    expect(begin.run()).toBe(0);
    db.close();
    other.close();
    fs.writeFileSync(join(folder, 'b.db'), 'no database '.repeat(1000));
    const bad = driver.open(join(folder, 'b.db'));
    expect(codeOf(() => bad.prepare('SELECT * FROM sqlite_schema').all())).toBe('SQLITE_NOTADB');
    bad.close();
  });

  it('makes no file where one must exist, and opens one whose name looks like a URL', async () => {
    const driver = await load(name);
    const file = join(folder, 'odd %41 name?mode=memory#x.db');
    expect(() => driver.open(file, { mustExist: true })).toThrow();
    expect(fs.readdirSync(folder)).toEqual([]);
    const db = driver.open(file);
    db.exec('CREATE TABLE t (a)');
    db.close();
    expect(fs.readdirSync(folder)).toEqual(['odd %41 name?mode=memory#x.db']);
    const again = driver.open(file, { mustExist: true });
    expect(again.prepare('SELECT name FROM sqlite_schema').all()).toEqual([['t']]);
    again.close();
  });

  it.runIf(process.platform === 'linux')('closes the file when it is closed, although statements still exist', async () => {
    const db = (await load(name)).open(join(folder, 'a.db'));
    db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)');
    const select = db.prepare('SELECT a FROM t');
    expect(select.all()).toEqual([[1], [2]]);
    expect(openFiles()).not.toEqual([]);
    db.close();
    expect(openFiles()).toEqual([]);
    expect(fs.readdirSync(folder)).toEqual(['a.db']);
    expect(select).toBeDefined();
  });
});

describe('the choice of a SQLite driver', () => {
  it('falls on the one of the runtime, else on better-sqlite3', async () => {
    expect((await load('')).name).toBe(HERE[0]);
  });

  it('falls on the binaries that come with Holdfast where better-sqlite3 was not built', async () => {
    vi.doMock('better-sqlite3', () => ({
      default: class {
        constructor() {
          throw new Error('Could not locate the bindings file. Tried:\n → /somewhere');
        }
      },
    }));
    expect((await load('')).name).toBe(hasOwn ? 'node:sqlite' : '@photostructure/sqlite');
    vi.resetModules();
    await expect(load('better-sqlite3')).rejects.toMatchObject({
      code: 'DRIVER_MISSING',
      message: expect.stringMatching(
        /Could not locate the bindings file\. Tried:\)[\s\S]*npm install better-sqlite3@12[\s\S]*npm rebuild/,
      ),
    });
  });

  it('makes no database: better-sqlite3 12 aborts Node 24 when one is collected', async () => {
    const { default: Real } = await import('better-sqlite3');
    const made: unknown[] = [];
    vi.doMock('better-sqlite3', () => ({
      default: class extends Real {
        constructor(...args: ConstructorParameters<typeof Real>) {
          super(...args);
          made.push(this);
        }
      },
    }));
    const driver = await load(hasOwn ? '' : 'better-sqlite3');
    expect(made).toEqual([]);
    driver.open(join(folder, 'a.db')).close();
    expect(made).toHaveLength(hasOwn ? 0 : 1);
  });

  it('can be made by an environment variable, and a wrong name is refused', async () => {
    expect((await load('@photostructure/sqlite')).name).toBe('@photostructure/sqlite');
    vi.resetModules();
    await expect(load('sqlite3')).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'HOLDFAST_SQLITE_DRIVER' });
  });

  it('prints no warning', async () => {
    const warnings: unknown[] = [];
    const note = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', note);
    const { emitWarning } = process;
    await load('');
    expect(process.emitWarning).toBe(emitWarning);
    await new Promise(setImmediate);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['SQLite', (): string => `sqlite:${join(folder, 'jobs.db')}`, { engine: 'sqlite', driver: HERE[0] }],
    ['memory', (): string => 'memory:', { engine: 'memory' }],
  ])('is shown by health() on %s', async (_store, connection, expected) => {
    const queue = new Queue('mail', { connection: connection() });
    const worker = new Worker('mail', async () => undefined, { connection: connection() });
    await worker.waitUntilReady();
    expect(worker.health().store).toEqual(expected);
    await worker.close();
    await queue.close();
  });
});

describe('the code of a SQLite error', () => {
  it.each([
    [{ code: 'SQLITE_BUSY_SNAPSHOT' }, 'SQLITE_BUSY_SNAPSHOT'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 5 }, 'SQLITE_BUSY'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 517 }, 'SQLITE_BUSY'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 522 }, 'SQLITE_IOERR_SHORT_READ'],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 778 }, 'SQLITE_IOERR'],
    [{ code: 'ERR_SQLITE_ERROR', message: 'unable to open database file: /x' }, 'SQLITE_CANTOPEN'],
    [{ code: 'ERR_SQLITE_ERROR', message: 'UNIQUE constraint failed: t.a' }, 'SQLITE_CONSTRAINT'],
    [{ code: 'ERR_SQLITE_ERROR', message: 'no such table: t' }, 'SQLITE_ERROR'],
    [{ code: 'ENOENT' }, undefined],
    [new Error('database is locked'), undefined],
    [undefined, undefined],
  ])('of %j is %s', (error, code) => {
    expect(resultCode(error)).toBe(code);
  });
});
