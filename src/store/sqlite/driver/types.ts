// All that the engine asks of a SQLite binding.

export type Value = string | number | null;

/** Rows are arrays: better-sqlite3 needs 1.3 µs for a job of 13 columns that way, 2.5 µs as an object. */
export interface Statement<Row extends Value[] = Value[]> {
  /** Returns how many rows were changed. Not for statements that return rows. */
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
  readonly name: DriverName;
  /**
   * SQLite's own waiting is off: it blocks the event loop and starves one of two processes. Waiting is done in write-lock.ts.
   * Errors of SQLite have a `code`, its result code (`SQLITE_BUSY` …).
   */
  open(path: string, options?: { mustExist?: boolean }): Database;
}

export type DriverName = 'node:sqlite' | 'better-sqlite3' | '@photostructure/sqlite';
