import fs from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { CRASH_GRACE_MS } from '../../../src/store/contract/index.js';
import { SCHEMA_VERSION } from '../../../src/store/sqlite/state/schema.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

const VERSION_1 = fs.readFileSync(new URL('version-1.sql', import.meta.url), 'utf8');

function fileOfVersion1(): string {
  const file = newFile();
  const db = new Database(file);
  db.exec(VERSION_1);
  db.close();
  return file;
}

/** Everything that says what a table or index is, in the order of names. */
function schemaOf(file: string): unknown[] {
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  expect(db.pragma('user_version', { simple: true })).toBe(SCHEMA_VERSION);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all() as string[];
  const indexes = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name").all();
  return [tables.map((table) => [table, db.pragma(`table_xinfo(${table})`)]), indexes];
}

describe('a SQLite file of an older version', () => {
  it('has the schema of a new one after it was opened', async () => {
    const [old, fresh] = [fileOfVersion1(), newFile()];
    await (await openStore({ path: old })).close();
    await (await openStore({ path: fresh })).close();
    expect(schemaOf(old)).toEqual(schemaOf(fresh));
  });

  it('gets the columns and tables that came without a new version, and keeps its version', async () => {
    const [old, fresh] = [newFile(), newFile()];
    for (const path of [old, fresh]) await (await openStore({ path })).close();
    const db = new Database(old);
    for (const column of ['lostBy', 'marks', 'extras']) db.exec(`ALTER TABLE jobs DROP COLUMN ${column}`);
    for (const column of ['scheduled', 'rules', 'parents']) db.exec(`ALTER TABLE queues DROP COLUMN ${column}`);
    db.exec('ALTER TABLE revocations DROP COLUMN kind');
    for (const table of ['dedup', 'schedules', 'metrics', 'groups', 'turns', 'links', 'families', 'steps'])
      db.exec(`DROP TABLE ${table}`);
    db.close();
    expect(schemaOf(old)).not.toEqual(schemaOf(fresh));
    await (await openStore({ path: old })).close();
    expect(schemaOf(old)).toEqual(schemaOf(fresh));
  });

  it('keeps its jobs and their order, and its running jobs are recovered', async () => {
    const store = await openStore({ path: fileOfVersion1() });
    expect((await store.status('q')).counts).toEqual({
      waiting: 2,
      prioritized: 1,
      delayed: 1,
      active: 1,
      completed: 1,
      failed: 0,
      'waiting-children': 0,
    });
    expect((await store.status('q')).cap).toBeUndefined();
    const lock = (await store.locks('q', { jobIds: ['running'] }))[0];
    expect(lock?.owner).toEqual({ host: 'box', pid: 7, name: 'mailer', instance: '' });
    // Its file is of another boot, so its owner is surely dead.
    expect((await store.sweep('q', 10)).stalled).toEqual(['running']);
    await store.openSession(newSession({ id: 'new' }));
    const { jobs } = await store.claim('q', { session: 'new', seq: 1, count: 10 });
    expect(jobs.map(({ id }) => id)).toEqual(['running', 'urgent', 'plain', 'ranked']);
  });

  it('gives earlier sessions the default grace', async () => {
    const file = fileOfVersion1();
    await (await openStore({ path: file })).close();
    const db = new Database(file, { readonly: true });
    afterwards(() => db.close());
    expect(db.prepare('SELECT graceMs FROM sessions').pluck().all()).toEqual([CRASH_GRACE_MS]);
  });

  it('supports keys, caps and named locks after it was opened', async () => {
    const store = await openStore({ path: fileOfVersion1() });
    await store.sweep('q', 10);
    await store.openSession(newSession({ id: 'new', slots: 5 }));
    await store.add('q', [newJob({ id: 'a', lockKey: 'k' }), newJob({ id: 'b', lockKey: 'k' })], { caller: 'p2', seq: 1 });
    await store.configure('q', { cap: { maxActive: 4 } });
    const claimed = async (seq: number) => (await store.claim('q', { session: 'new', seq, count: 10 })).jobs.map(({ id }) => id);
    expect(await claimed(1)).toEqual(['running', 'urgent', 'plain', 'a']);
    await store.configure('q', { cap: null });
    expect(await claimed(2)).toEqual(['ranked']);
    const wish = { name: 'x', token: 't', session: 'new', keepPlaceMs: 0 };
    expect(await store.acquire('q', [wish])).toMatchObject([{ status: 'held' }]);
  });

  it('is migrated once when several processes open it at the same moment', async () => {
    const file = fileOfVersion1();
    const processes = await Promise.all(Array.from({ length: 4 }, () => StoreProcess.start(file)));
    await Promise.all(processes.map((one) => one.call('open')));
    await Promise.all(processes.map((one, n) => one.call('add', 'q', [newJob({ lockKey: 'k' })], { caller: `p${n}`, seq: 1 })));
    const store = await openStore({ path: file });
    expect((await store.status('q')).counts.waiting).toBe(6);
    await store.close();
    schemaOf(file);
  });
});

it('stores the replies to an add in the form that older versions read', async () => {
  const file = newFile();
  const store = await openStore({ path: file });
  const jobs = [newJob({ id: 'x' }), newJob({ id: 'y' }), newJob({ id: 'x' })];
  const replies = await store.add('q', jobs, { caller: 'p', seq: 1 });
  expect(replies.map(({ status }) => status)).toEqual(['added', 'added', 'duplicate']);
  expect(await store.add('q', jobs, { caller: 'p', seq: 1 })).toEqual(replies);
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  const stored = db.prepare('SELECT reply FROM callers').pluck().get() as string;
  expect(JSON.parse(stored)).toEqual([
    { id: 'x', duplicate: false },
    { id: 'y', duplicate: false },
    { id: 'x', duplicate: true },
  ]);
});
