// The interface that the engine needs of a SQLite binding.

export type Value = string | number | null;

/** Rows are arrays: with better-sqlite3, a job of 13 columns takes 1.3 µs as an array and 2.5 µs as an object. */
export interface Statement<Row extends Value[] = Value[]> {
  /** Returns how many rows were changed. Not for statements that return rows. */
  run(...values: Value[]): number;
  get(...values: Value[]): Row | undefined;
  all(...values: Value[]): Row[];
}

export interface Database {
  /**
   * Compiles the statement at its first use, so a store that only renews never compiles the rest.
   * Write `LIMIT ? + 0`: SQLite compiles a statement with a bare parameter after LIMIT again whenever it is bound (30 µs for the
   * statement of a claim).
   */
  prepare<Row extends Value[] = Value[]>(sql: string): Statement<Row>;
  exec(sql: string): void;
  close(): void;
  readonly inTransaction: boolean;
}

export interface Driver {
  readonly name: DriverName;
  /**
   * Opens a database. SQLite's own busy wait is off, because it blocks the event loop and starves one of two processes;
   * write-lock.ts waits instead. `readOnly`: the file must exist.
   * Errors of SQLite have a `code`: SQLite's result code (`SQLITE_BUSY` …).
   */
  open(path: string, options?: { mustExist?: boolean; readOnly?: boolean }): Database;
  /**
   * Returns a connection that a user has opened, as a database. Undefined: it is not a connection of this very copy of the binding. Each copy
   * contains its own SQLite, and two of them in one process do not see each other's locks.
   */
  adopt(connection: object): Database | undefined;
}

export type DriverName = 'node:sqlite' | 'better-sqlite3' | '@photostructure/sqlite';
