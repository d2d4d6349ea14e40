// The first start of an API and its workers: several processes create one file at the same moment.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { type Database as Seam, loadDriver } from '../../../src/store/sqlite/driver/load.js';
import { blameOf } from '../../../src/store/sqlite/driver/errors.js';
import { migrate, SCHEMA_VERSION } from '../../../src/store/sqlite/state/schema.js';
import { afterwards, newFile, newFolder } from './support.js';
import { paced } from '../../support/wait/pace.js';

const PROCESSES = 8;
const ROUNDS = 25;

async function startOpener(): Promise<(file: string, at: number) => Promise<string>> {
  const child = fork(fileURLToPath(new URL('opener.mjs', import.meta.url)));
  const ended = once(child, 'exit');
  afterwards(() => (child.kill('SIGKILL'), ended));
  await once(child, 'message');
  return async (file, at) => {
    const reply = once(child, 'message') as Promise<[string]>;
    child.send({ path: file, at });
    return (await reply)[0];
  };
}

describe('a new SQLite file', () => {
  it(`works for ${PROCESSES} processes that create it at once`, { timeout: paced(120_000) }, async () => {
    const openers = await Promise.all(Array.from({ length: PROCESSES }, startOpener));
    const folder = newFolder();
    for (let round = 0; round < ROUNDS; round += 1) {
      const file = path.join(folder, `${round}.db`);
      const at = Date.now() + 10;
      const replies = await Promise.all(openers.map((open) => open(file, at)));
      expect(replies).toEqual(replies.map(() => 'added'));
      const db = new Database(file, { readonly: true });
      expect(db.prepare('SELECT count(*) FROM jobs').pluck().get()).toBe(PROCESSES);
      db.close();
    }
  });

  const MOMENTS = [
    'BEGIN',
    'PRAGMA application_id',
    'SELECT count(*) FROM sqlite_schema',
    'PRAGMA user_version',
    'BEGIN IMMEDIATE',
  ];

  it.each(MOMENTS)('is not taken for foreign when another process creates its tables after %s', async (moment) => {
    const file = newFile();
    const driver = await loadDriver();
    const [ours, theirs] = [driver.open(file), driver.open(file)];
    afterwards(() => [ours, theirs].forEach((db) => db.close()));
    let interrupted = false;
    const interrupt = (sql: string): void => {
      if (interrupted || sql !== moment) return;
      interrupted = true;
      ignoringBusy(() => migrate(theirs, file));
    };
    const interruptible: Seam = {
      prepare: (sql) => {
        const statement = ours.prepare<never>(sql);
        const get = (...values: (string | number | null)[]): never | undefined => {
          const row = statement.get(...values);
          interrupt(sql);
          return row;
        };
        return { run: () => statement.run(), all: () => statement.all(), get };
      },
      exec: (sql) => {
        ours.exec(sql);
        interrupt(sql);
      },
      close: () => ours.close(),
      get inTransaction() {
        return ours.inTransaction;
      },
    };
    ignoringBusy(() => migrate(interruptible, file));
    expect(interrupted).toBe(true);
    migrate(ours, file);
    expect(ours.prepare('PRAGMA user_version').get()).toEqual([SCHEMA_VERSION]);
  });
});

/** An opener that finds the file busy tries again. */
function ignoringBusy(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (blameOf(error) !== 'busy') throw error;
  }
}
