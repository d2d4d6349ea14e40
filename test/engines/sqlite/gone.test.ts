// Files that SQLite has open may be deleted, replaced or cut by others while it goes on writing without an error.
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { SqliteStore } from '../../../src/store/sqlite/index.js';
import { newFile, newJob, openStore, StoreProcess } from './support.js';

interface Adder {
  add(...args: Parameters<SqliteStore['add']>): Promise<unknown>;
}

const GONE = { code: 'STORE_GONE', retryable: false };

let seq = 0;

/** Adds jobs one by one, so that each of them is a commit; returns the ids that were acknowledged. */
async function addOneByOne(store: Adder, caller: string, count: number): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const id = `${caller}-${(seq += 1)}`;
    try {
      await store.add('q', [newJob({ id, data: JSON.stringify('x'.repeat(3_000)) })], { caller, seq });
      acknowledged.push(id);
    } catch (error) {
      expect((error as { code: string }).code).toBe('STORE_GONE');
    }
  }
  return acknowledged;
}

async function otherProcess(file: string): Promise<Adder & { end(): Promise<void> }> {
  const child = await StoreProcess.start(file);
  await child.call('open');
  return { add: (...args) => child.call('add', ...args), end: () => child.end() };
}

async function idsIn(file: string): Promise<string[]> {
  const store = await openStore({ path: file });
  const { jobs } = await store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true });
  await store.close();
  return jobs.map(({ id }) => id);
}

describe('a SQLite store whose files others touch', () => {
  it('loses no acknowledged job when the -shm is deleted and another process starts', async () => {
    const file = newFile();
    const living = await openStore({ path: file });
    const before = await addOneByOne(living, 'living', 30);
    fs.rmSync(`${file}-shm`);
    const late = await otherProcess(file);
    const mixed: string[] = [];
    for (let n = 0; n < 30; n += 1) {
      mixed.push(...(await addOneByOne(late, 'late', 1)), ...(await addOneByOne(living, 'living', 1)));
    }
    await living.close();
    await late.end();
    const kept = await idsIn(file);
    expect(before).toHaveLength(30);
    expect(mixed.filter((id) => id.startsWith('late'))).toHaveLength(30);
    for (const id of [...before, ...mixed]) expect(kept).toContain(id);
    await expect(living.add('q', [newJob()], { caller: 'p', seq: 1 })).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });

  it('does not delete the log of others when it closes last', async () => {
    const file = newFile();
    const living = await openStore({ path: file });
    const acknowledged = await addOneByOne(living, 'living', 5);
    fs.rmSync(`${file}-shm`);
    const late = await otherProcess(file);
    acknowledged.push(...(await addOneByOne(late, 'late', 5)));
    await late.end();
    await living.close();
    expect(await idsIn(file)).toEqual(acknowledged);
    expect(fs.readdirSync(path.dirname(file)).filter((name) => name.includes('kept'))).toEqual([]);
  });

  it('is gone for a later store of the same process, too', async () => {
    const file = newFile();
    const living = await openStore({ path: file });
    await addOneByOne(living, 'living', 1);
    fs.rmSync(`${file}-shm`);
    const late = await otherProcess(file);
    await addOneByOne(late, 'late', 1);
    const second = await openStore({ path: file });
    await expect(second.add('q', [newJob()], { caller: 'second', seq: 1 })).rejects.toMatchObject(GONE);
    await late.end();
  });

  it.each([0, 20, 5_000, 100_000])('acknowledges nothing behind a log that was cut to %i bytes', async (bytes) => {
    const file = newFile();
    const store = await openStore({ path: file });
    await addOneByOne(store, 'p', 30);
    expect(fs.statSync(`${file}-wal`).size).toBeGreaterThan(150_000);
    fs.truncateSync(`${file}-wal`, bytes);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: ++seq })).rejects.toMatchObject(GONE);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: ++seq })).rejects.toMatchObject(GONE);
  });

  it('leaves the database whole when it closes after its log was cut', async () => {
    const file = newFile();
    const first = await openStore({ path: file });
    const acknowledged = await addOneByOne(first, 'first', 20);
    await first.close();
    const store = await openStore({ path: file });
    await addOneByOne(store, 'p', 30);
    fs.truncateSync(`${file}-wal`, 0);
    expect(await addOneByOne(store, 'p', 1)).toEqual([]);
    await store.close();
    expect(await idsIn(file)).toEqual(acknowledged);
    const db = new Database(file);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    db.close();
  });

  it('acknowledges nothing behind a cut log when several processes write in turn', async () => {
    const file = newFile();
    const [one, two] = [await openStore({ path: file }), await otherProcess(file)];
    for (let n = 0; n < 10; n += 1) {
      await addOneByOne(one, 'one', 1);
      await addOneByOne(two, 'two', 1);
    }
    fs.truncateSync(`${file}-wal`, 50_000);
    const late = await otherProcess(file).catch(({ code }: { code: string }) => code);
    expect(await addOneByOne(one, 'one', 2)).toEqual([]);
    expect(await addOneByOne(two, 'two', 2)).toEqual([]);
    if (typeof late !== 'string') expect(await addOneByOne(late, 'late', 2)).toEqual([]);
  });

  it('reports a cut log as gone on reads', async () => {
    const file = newFile();
    const [store, other] = [await openStore({ path: file }), await otherProcess(file)];
    await addOneByOne(store, 'p', 1);
    await addOneByOne(other, 'other', 20);
    fs.truncateSync(`${file}-wal`, 0);
    await expect(store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true })).rejects.toMatchObject(GONE);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: ++seq })).rejects.toMatchObject(GONE);
  });

  it('reports a database that was cut to nothing as gone', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await addOneByOne(store, 'p', 1);
    fs.truncateSync(file, 0);
    await expect(store.add('q', [newJob()], { caller: 'p', seq: ++seq })).rejects.toMatchObject(GONE);
  });

  it.each([4096, 40_000])('acknowledges nothing for a database that was cut to %i bytes', async (bytes) => {
    const file = newFile();
    const store = await openStore({ path: file });
    await addOneByOne(store, 'p', 30);
    const foreign = new Database(file);
    foreign.pragma('wal_checkpoint');
    foreign.close();
    await addOneByOne(store, 'p', 1);
    expect(fs.statSync(file).size).toBeGreaterThan(100_000);
    fs.truncateSync(file, bytes);
    expect(await addOneByOne(store, 'p', 2)).toEqual([]);
  });

  it('(N) goes on after a VACUUM that makes the database smaller', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const ids = await addOneByOne(store, 'p', 100);
    const foreign = new Database(file);
    foreign.pragma('wal_checkpoint');
    await addOneByOne(store, 'p', 1);
    const before = fs.statSync(file).size;
    await store.change('q', ids.slice(0, 90), { kind: 'remove' });
    foreign.exec('VACUUM');
    foreign.pragma('wal_checkpoint');
    foreign.close();
    expect(fs.statSync(file).size).toBeLessThan(before / 2);
    expect(await addOneByOne(store, 'p', 100)).toHaveLength(100);
    await store.close();
    expect(await idsIn(file)).toHaveLength(111);
  });

  it('(N) goes on when another program shortens the log or the database in the way that SQLite does', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const acknowledged: string[] = [];
    for (const sql of [
      'PRAGMA wal_checkpoint(TRUNCATE)',
      'PRAGMA wal_checkpoint(RESTART)',
      'VACUUM',
      'PRAGMA wal_checkpoint(TRUNCATE)',
    ]) {
      acknowledged.push(...(await addOneByOne(store, 'p', 20)));
      const foreign = new Database(file);
      foreign.exec(sql);
      foreign.close();
      acknowledged.push(...(await addOneByOne(store, 'p', 20)));
    }
    expect(acknowledged).toHaveLength(160);
    await store.close();
    expect(await idsIn(file)).toEqual(acknowledged);
  });
});
