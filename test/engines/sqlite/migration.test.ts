// Migrating a file: by what a later release adds without a new version, once however many open it at once, and never from a layout that
// was not released.
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { type Additions, migrate, SCHEMA_VERSION } from '../../../src/store/sqlite/state/schema.js';
import { afterwards, newFile, newJob, openStore, StoreProcess } from './support.js';

/** As a later release might add it. */
const ADDED: Additions = {
  columns: [['jobs', 'later', 'ALTER TABLE jobs ADD COLUMN later TEXT']],
  tables: [
    [
      'laterByName',
      'CREATE TABLE IF NOT EXISTS later (name TEXT NOT NULL) STRICT; CREATE INDEX IF NOT EXISTS laterByName ON later (name)',
    ],
  ],
};

function read(file: string, sql: string): unknown[] {
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  return db.prepare(sql).pluck().all();
}

async function migrated(file: string, additions: Additions): Promise<void> {
  const db = (await loadDriver()).open(file);
  afterwards(() => db.close());
  migrate(db, file, additions);
}

describe('a SQLite file of an earlier release', () => {
  it('gets the columns and tables that came without a new version, and keeps its version and its jobs', async () => {
    const file = newFile();
    const earlier = await openStore({ path: file });
    await earlier.add('q', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    await migrated(file, ADDED);
    await migrated(file, ADDED);
    expect(read(file, 'PRAGMA user_version')).toEqual([SCHEMA_VERSION]);
    expect(read(file, "SELECT name FROM pragma_table_info('jobs') WHERE name = 'later'")).toEqual(['later']);
    expect(read(file, "SELECT name FROM sqlite_schema WHERE name LIKE 'later%' ORDER BY name")).toEqual(['later', 'laterByName']);
    // The process of the earlier release works on, and another one may start.
    await earlier.add('q', [newJob({ id: 'more' })], { caller: 'p', seq: 2 });
    const another = await openStore({ path: file });
    expect((await another.jobs('q', ['kept', 'more'])).jobs.map((job) => job?.id)).toEqual(['kept', 'more']);
  });

  it('has the tables of a new file if only some of what was added is there', async () => {
    const [half, fresh] = [newFile(), newFile()];
    for (const path of [half, fresh]) await (await openStore({ path })).close();
    await migrated(half, { ...ADDED, tables: [] });
    for (const path of [half, fresh]) await migrated(path, ADDED);
    const schema = 'SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name';
    expect(read(half, schema)).toEqual(read(fresh, schema));
  });
});

it('a new file gets its tables once when several processes open it at the same moment', async () => {
  const file = newFile();
  const processes = await Promise.all(Array.from({ length: 4 }, () => StoreProcess.start(file)));
  await Promise.all(processes.map((one) => one.call('open')));
  await Promise.all(processes.map((one, n) => one.call('add', 'q', [newJob({ lockKey: 'k' })], { caller: `p${n}`, seq: 1 })));
  const store = await openStore({ path: file });
  expect((await store.status('q')).counts.waiting).toBe(4);
  await store.close();
  expect(read(file, 'PRAGMA integrity_check')).toEqual(['ok']);
});

it('a file of a build from before 0.1.0 is refused, with what to do, and stays as it is', async () => {
  const file = newFile();
  const db = new Database(file);
  db.exec(`CREATE TABLE jobs (id TEXT); INSERT INTO jobs VALUES ('kept');
    PRAGMA application_id = ${0x48667374}; PRAGMA user_version = 3`);
  db.close();
  await expect(openStore({ path: file })).rejects.toMatchObject({
    code: 'STORE_UNSUPPORTED',
    message: expect.stringMatching(/from before 0\.1\.0.*Delete the file with its jobs, or name another file/) as string,
  });
  expect(read(file, 'SELECT id FROM jobs')).toEqual(['kept']);
});
