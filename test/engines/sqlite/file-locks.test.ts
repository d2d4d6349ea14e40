// On most systems a process that opens and closes a file loses all its locks on it. SQLite's lock on an open database tells other programs
// that it is in use: the last one to leave deletes its log.
import fs from 'node:fs';
import Database from 'better-sqlite3';
import { Queue, Worker } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { newFile, openStore } from './support.js';

/** Locks of this process on the file itself. */
function locksOn(file: string): string[] {
  const { ino } = fs.statSync(file);
  const locks = fs.readFileSync('/proc/locks', 'utf8').split('\n');
  return locks.filter((lock) => lock.includes(`:${ino} `) && lock.includes(` ${process.pid} `));
}

describe.runIf(process.platform === 'linux')('the lock on an open SQLite file', () => {
  it('stays when another store of the process opens the file, and when one of them is closed', async () => {
    const path = newFile();
    await openStore({ path });
    expect(locksOn(path)).toHaveLength(1);
    const second = await openStore({ path });
    expect(locksOn(path)).toHaveLength(1);
    await second.close();
    expect(locksOn(path)).toHaveLength(1);
  });

  it('(N) is lost when the file is opened and closed by anything else', async () => {
    const path = newFile();
    await openStore({ path });
    fs.closeSync(fs.openSync(path, 'r'));
    expect(locksOn(path)).toHaveLength(0);
  });

  it('is no reason to take a foreign database that is open for ours', async () => {
    const path = newFile();
    const other = new Database(path);
    other.exec('CREATE TABLE theirs (a)');
    await expect(openStore({ path })).rejects.toMatchObject({ code: 'STORE_FOREIGN' });
    expect(other.prepare('SELECT name FROM sqlite_master').pluck().all()).toEqual(['theirs']);
    other.close();
  });

  it('stays when the lock thread opens the file', async () => {
    const path = newFile();
    const connection = `sqlite:${path}`;
    const queue = new Queue('q', { connection });
    const worker = new Worker('q', async () => undefined, { connection });
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    await expect.poll(() => worker.health().lockThread, { timeout: 10_000 }).toBe('thread');
    expect(locksOn(path)).toHaveLength(1);
    await worker.close();
    await queue.close();
  });
});
