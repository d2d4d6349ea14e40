// How a SQLite store finds out that other processes have written: it polls while something happens, and rests while nothing does.
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { type Database as Seam, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { Wake } from '../../../src/store/sqlite/wake.js';
import { afterwards, newFile, newJob, openStore } from './support.js';

interface Scene {
  /** Polls since the last call. */
  polls(): number;
  woken(): number;
  /** A commit of another connection that changes the watched queue. */
  write(): void;
  /** A commit of another connection that changes no watched queue, such as a renewal. */
  writeElsewhere(): void;
}

async function scene(): Promise<Scene> {
  const file = newFile();
  const store = await openStore({ path: file });
  await store.add('q', [newJob()], { caller: 'p', seq: 1 });
  const db = (await loadDriver()).open(file);
  const other = new Database(file);
  let polls = 0;
  let woken = 0;
  const counting: Seam = {
    prepare: (sql) => {
      const statement = db.prepare<never>(sql);
      const isPoll = sql === 'PRAGMA data_version';
      const get = (...values: (string | number | null)[]) => ((polls += isPoll ? 1 : 0), statement.get(...values));
      return { run: () => 0, all: () => [], get };
    },
    exec: () => {},
    close: () => {},
    inTransaction: false,
  };
  const wake = new Wake(counting, fs.realpathSync(file), () => {});
  wake.watch('q', () => (woken += 1));
  afterwards(() => (wake.close(), db.close(), other.close()));
  const write = (): void => void other.prepare("UPDATE queues SET version = version + 1 WHERE name = 'q'").run();
  const takePolls = (): number => [polls, (polls = 0)][0] as number;
  const writeElsewhere = (): void => void other.prepare("INSERT INTO queues (name) VALUES ('q' || random())").run();
  return { polls: takePolls, woken: () => woken, write, writeElsewhere };
}

/** Until it polls rarely: fewer than ten times in 300 ms. */
async function untilResting({ polls }: Scene): Promise<void> {
  await expect.poll(async () => (polls(), await sleep(300), polls()), { timeout: 15_000 }).toBeLessThan(10);
}

describe('the wake-up of a SQLite store', () => {
  it('rests while nothing happens, wakes for a commit of another process, and rests again', async () => {
    const one = await scene();
    await untilResting(one);
    for (let n = 1; n <= 2; n += 1) {
      one.write();
      await expect.poll(one.woken, { timeout: 5_000, interval: 5 }).toBe(n);
      await untilResting(one);
    }
  });

  it('rests again at once after a lone commit that changes no watched queue, and still wakes for the next one', async () => {
    const one = await scene();
    await untilResting(one);
    const polls: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      one.polls();
      one.writeElsewhere();
      await sleep(1_100);
      polls.push(one.polls());
    }
    // Where the file system reports a write late, it ends the rest once more. Then 30 polls follow, but not each time.
    expect(Math.min(...polls)).toBeGreaterThanOrEqual(1);
    expect(Math.min(...polls)).toBeLessThan(20);
    one.write();
    await expect.poll(one.woken, { timeout: 5_000, interval: 5 }).toBe(1);
  });

  it('stays awake while others write elsewhere all the time, instead of resting after each commit', async () => {
    const one = await scene();
    await untilResting(one);
    const watch = vi.spyOn(fs, 'watch');
    afterwards(() => watch.mockRestore());
    for (let n = 0; n < 50; n += 1) {
      one.writeElsewhere();
      await sleep(5);
    }
    expect(watch.mock.calls.length).toBeLessThanOrEqual(2);
  });

  it('does not rest where the log cannot be watched', async () => {
    const watch = vi.spyOn(fs, 'watch').mockImplementation(() => {
      throw Object.assign(new Error('no watches left'), { code: 'ENOSPC' });
    });
    afterwards(() => watch.mockRestore());
    const one = await scene();
    await expect.poll(() => watch.mock.calls.length, { timeout: 10_000 }).toBeGreaterThan(0);
    one.polls();
    await expect.poll(() => one.polls(), { interval: 500 }).toBeGreaterThan(10);
  });

  it('stops resting once the file system has missed a write', async () => {
    const deaf = { on: () => deaf, close: () => {} };
    const watch = vi.spyOn(fs, 'watch').mockImplementation(() => deaf as unknown as fs.FSWatcher);
    afterwards(() => watch.mockRestore());
    const one = await scene();
    await untilResting(one);
    one.write();
    await expect.poll(one.woken, { timeout: 5_000 }).toBe(1);
    await expect.poll(() => one.polls(), { timeout: 5_000, interval: 500 }).toBeGreaterThan(10);
    await sleep(1_500);
    one.polls();
    await expect.poll(() => one.polls(), { interval: 500 }).toBeGreaterThan(10);
    expect(watch).toHaveBeenCalledTimes(1);
  });
});
