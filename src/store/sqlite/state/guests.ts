// Joins transactions of users: carries out a verb on a connection on which the user has a transaction open, so that the verb takes effect
// with the user's commit or not at all.
// - Nothing here may wait for the connection of the store: it waits for the write lock, which the user's transaction may hold.
// - The store needs no notice of the commit. Its own connection sees it as that of any other process: `data_version` changes, so the
//   committer reads rows of queues anew, and the poll of wake.ts wakes the watchers.
import fs from 'node:fs';
import { HoldfastError } from '../../../errors.js';
import type { StoreClock } from './clock.js';
import type { Committer } from './commit.js';
import { blameOf, isReadOnly, toStoreError } from '../driver/errors.js';
import { gone } from '../driver/file.js';
import type { Database, Driver, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { Parts } from './parts.js';
import { Transaction } from './transaction.js';

/** A connection of a user, with statements of its own. */
interface Guest {
  db: Database;
  parts: Parts;
  files: Statement<[number: number, name: string, file: string | null]>;
  twin: Statement<[name: string]>;
}

export interface GuestsOptions {
  driver: Driver;
  /** The real path. */
  path: string;
  clock: StoreClock;
  committer: Committer;
}

export class Guests {
  readonly #options: GuestsOptions;
  readonly #known = new WeakMap<object, Guest>();

  constructor(options: GuestsOptions) {
    this.#options = options;
  }

  /** Carries out `work` in the user's transaction: all of it or, if it throws, nothing. */
  join<T>(connection: unknown, work: (parts: Parts, transaction: Transaction) => T): T {
    const { clock, committer, path } = this.#options;
    const { db, parts } = this.#guestOf(connection);
    if (!committer.check()) throw gone(path);
    this.#try(() => db.exec('SAVEPOINT holdfast'));
    try {
      const transaction = new Transaction(clock, parts.queues);
      const result = work(parts, transaction);
      transaction.save();
      db.exec('RELEASE holdfast');
      return result;
    } catch (error) {
      // SQLite itself rolls back the whole transaction after some errors, such as a full disk.
      if (db.inTransaction) this.#try(() => db.exec('ROLLBACK TO holdfast; RELEASE holdfast'));
      throw this.#explain(error);
    }
  }

  #try<T>(run: () => T): T {
    try {
      return run();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #guestOf(connection: unknown): Guest {
    const known = typeof connection === 'object' && connection !== null ? this.#known.get(connection) : undefined;
    const guest = known ?? this.#adopt(connection);
    if (!guest.db.inTransaction) {
      throw refused(
        'No transaction is open on this connection. Begin with db.exec("BEGIN IMMEDIATE"), await the call, and then commit: ' +
          'a function that better-sqlite3 runs with db.transaction() commits before the call begins',
      );
    }
    this.#checkFile(guest);
    return guest;
  }

  #adopt(connection: unknown): Guest {
    const { driver, clock } = this.#options;
    if (driver.name === '@photostructure/sqlite') {
      throw refused(
        'The store uses the SQLite that Holdfast brings for Node 20, with which your program cannot open a connection. ' +
          'Install better-sqlite3 12, or use Node 22.16 or newer',
      );
    }
    const db = typeof connection === 'object' && connection !== null ? driver.adopt(connection) : undefined;
    if (db === undefined || typeof connection !== 'object' || connection === null) {
      throw refused(
        `The store uses ${driver.name}. Pass ${EXPECTED[driver.name]} of the same installed copy, with an open transaction: ` +
          'two copies of SQLite in one process do not see each other’s locks. HOLDFAST_SQLITE_DRIVER chooses the one of the store',
      );
    }
    const parts = new Parts(db, clock);
    const guest = {
      db,
      parts,
      files: db.prepare<[number, string, string | null]>('PRAGMA database_list'),
      twin: sql<[string]>(db, 'temporary-twin'),
    };
    this.#known.set(connection, guest);
    return guest;
  }

  /** Checks at each call, because a user may create temporary tables at any time, and replace the file. */
  #checkFile({ files, twin }: Guest): void {
    const { path } = this.#options;
    // This statement reads no table, so a wrong file is not read.
    const found = this.#try(() => files.all()).find(([, name]) => name === 'main')?.[2] ?? '';
    if (found === '' || !isSameFile(found, path)) {
      const name = found === '' ? 'no file' : found;
      throw refused(`The main database of this connection is ${name}, and the store is ${path}. Open the file of the store`);
    }
    const hidden = this.#try(() => twin.get())?.[0];
    if (hidden !== undefined) {
      throw refused(
        `The temporary table ${hidden} of this connection hides a table of the store. Drop it, or give it another name`,
      );
    }
  }

  #explain(error: unknown): HoldfastError {
    if (error instanceof HoldfastError) return error;
    const { committer, path } = this.#options;
    if (!committer.check()) return gone(path);
    if (isReadOnly(error)) return refused('This connection may only read. Open one that may write');
    if (blameOf(error) !== 'busy') return toStoreError(error, path);
    return new HoldfastError(
      'STORE_BUSY',
      `Another connection has written to the SQLite store ${path} since your transaction began, or is writing, so nothing of the call was written. ` +
        'Roll your transaction back and repeat all of it. Begin with BEGIN IMMEDIATE, which waits for its turn before it reads.',
      { cause: error, retryable: true, store: 'sqlite', option: 'transaction' },
    );
  }
}

const EXPECTED: Record<Driver['name'], string> = {
  'node:sqlite': 'a DatabaseSync',
  'better-sqlite3': 'a Database of better-sqlite3',
  '@photostructure/sqlite': 'nothing',
};

function refused(why: string): HoldfastError {
  return new HoldfastError('INVALID_OPTION', `The option "transaction" cannot be used: ${why}. Nothing was written.`, {
    option: 'transaction',
    store: 'sqlite',
  });
}

/** `real`: a real path. A hard link leads to the same file, but SQLite would use another log for it. */
function isSameFile(file: string, real: string): boolean {
  try {
    return fs.realpathSync(file) === real;
  } catch {
    return false;
  }
}
