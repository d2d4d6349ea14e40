// The seam over the SQLite binding: the only file that knows better-sqlite3, and all that the engine asks of a binding.
// Rows come back as arrays: better-sqlite3 needs 1.3 µs for a job of 13 columns that way, 2.5 µs as an object.
import type BetterSqlite3 from 'better-sqlite3';
import { HoldfastError } from '../../errors.js';

export type Value = string | number | null;

export interface Statement<Row extends Value[] = Value[]> {
  /** Answers how many rows were changed. Not for statements that return rows. */
  run(...values: Value[]): number;
  get(...values: Value[]): Row | undefined;
  all(...values: Value[]): Row[];
}

export interface Database {
  /**
   * Compiles at first use: a store that only renews never compiles the rest. Write `LIMIT ? + 0`: SQLite compiles a statement with a bare
   * parameter behind LIMIT again whenever it is bound (30 µs for that of a claim).
   */
  prepare<Row extends Value[] = Value[]>(sql: string): Statement<Row>;
  exec(sql: string): void;
  close(): void;
  readonly inTransaction: boolean;
}

export interface Driver {
  open(path: string, options?: { mustExist?: boolean }): Database;
}

let loading: Promise<Driver> | undefined;

export function loadDriver(): Promise<Driver> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Driver> {
  try {
    const { default: Binding } = await import('better-sqlite3');
    // The package loads without its native part, which is looked for when the first database is made.
    new Binding(':memory:').close();
    return {
      // SQLite's own waiting blocks the event loop and starves one of two processes; waiting is done in write-lock.ts.
      open: (path, options) => new BetterDatabase(new Binding(path, { timeout: 0, fileMustExist: options?.mustExist ?? false })),
    };
  } catch (cause) {
    // Whoever follows the advice below need not restart.
    loading = undefined;
    throw missing(cause);
  }
}

function missing(cause: unknown): HoldfastError {
  const detail = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
  return new HoldfastError(
    'DRIVER_MISSING',
    `The SQLite store needs better-sqlite3 with its native part, which cannot be loaded (${detail}). Type: npm rebuild better-sqlite3\n` +
      'If npm says that its install script is not allowed, allow it first: npm approve-scripts better-sqlite3 ' +
      '(or "allowScripts": { "better-sqlite3": true } in package.json). If the package itself is missing: npm install better-sqlite3',
    { cause, store: 'sqlite' },
  );
}

class BetterDatabase implements Database {
  readonly #db: BetterSqlite3.Database;

  constructor(db: BetterSqlite3.Database) {
    this.#db = db;
  }

  prepare<Row extends Value[]>(sql: string): Statement<Row> {
    return new LazyStatement<Row>(this.#db, sql);
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  close(): void {
    this.#db.close();
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }
}

class LazyStatement<Row extends Value[]> implements Statement<Row> {
  readonly #db: BetterSqlite3.Database;
  readonly #sql: string;
  #compiled: BetterSqlite3.Statement<Value[], Row> | undefined;

  constructor(db: BetterSqlite3.Database, sql: string) {
    this.#db = db;
    this.#sql = sql;
  }

  run(...values: Value[]): number {
    return (this.#compiled ?? this.#compile()).run(...values).changes;
  }

  get(...values: Value[]): Row | undefined {
    return (this.#compiled ?? this.#compile()).get(...values);
  }

  all(...values: Value[]): Row[] {
    return (this.#compiled ?? this.#compile()).all(...values);
  }

  #compile(): BetterSqlite3.Statement<Value[], Row> {
    const statement = this.#db.prepare<Value[], Row>(this.#sql);
    this.#compiled = statement.reader ? statement.raw() : statement;
    return this.#compiled;
  }
}
