// The tables, as a list of migrations in sql/schema.sql. The version of a file is its `user_version`; its `application_id` marks it as a Holdfast
// file.
import { HoldfastError } from '../../../errors.js';
import type { Database } from '../driver/load.js';
import { sql, sqlOf } from '../driver/sql.js';

/** "HfDb" */
export const APPLICATION_ID = 0x48664462;
/** The mark of builds from before 0.1.0, whose layouts no version migrates. */
const UNRELEASED_ID = 0x48667374;

/**
 * The numbers in `jobs.state`. Partial indexes contain these numbers. `behind`: waiting, but not the first job of its lock key
 * (key-groups.ts). The index of the finished jobs has the jobs in `waiting-children` too.
 */
export const STATE = { behind: 0, waiting: 1, delayed: 2, active: 3, completed: 4, failed: 5, 'waiting-children': 6 } as const;

/** The first is the layout of 0.1.0. A released migration never changes: append the next one. */
const MIGRATIONS = ['schema/1-tables'] as const;

export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * What a release adds without a new version, so that processes of earlier releases can work beside it: a column, which is nullable or has a
 * default, or a table, by the last thing that its text makes (the table or its index). The migration finds out what is missing.
 */
export interface Additions {
  columns: readonly (readonly [table: string, column: string, text: string])[];
  tables: readonly (readonly [name: string, text: string])[];
}

const ADDITIONS: Additions = { columns: [], tables: [] };

/**
 * Migrates the file to this version. If several processes start at once, the one that gets the write lock migrates. The others
 * check again under the lock and find the migration done. Throws SQLITE_BUSY while another process migrates; the caller retries.
 */
export function migrate(db: Database, path: string, additions = ADDITIONS): void {
  const isDone = (): boolean => versionOf(db, path) === SCHEMA_VERSION && missing(db, additions).length === 0;
  if (inTransaction(db, 'BEGIN', isDone)) return;
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    for (let version = versionOf(db, path); version < SCHEMA_VERSION; version++) {
      db.exec(sqlOf(MIGRATIONS[version] as string));
    }
    for (const text of missing(db, additions)) db.exec(text);
    // Part of the first commit, before the file turns to WAL, so the first hundred bytes of the file always show that it is a
    // Holdfast file.
    db.exec(sqlOf('schema/mark-as-ours'));
  });
}

/** Returns the texts of the missing columns and tables. */
function missing(db: Database, { columns, tables }: Additions): string[] {
  if (columns.length + tables.length === 0) return [];
  const column = sql(db, 'schema/find-column', 'table column');
  const made = sql(db, 'schema/find-made', 'name');
  return [
    ...columns.filter(([table, name]) => column.get(table, name) === undefined).map(([, , text]) => text),
    ...tables.filter(([name]) => made.get(name) === undefined).map(([, text]) => text),
  ];
}

function inTransaction<T>(db: Database, begin: 'BEGIN' | 'BEGIN IMMEDIATE', run: () => T): T {
  db.exec(begin);
  try {
    const result = run();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** Returns the error for a file with this `application_id`; undefined if it is a Holdfast file. */
export function refusalOf(path: string, applicationId: number | undefined): HoldfastError | undefined {
  if (applicationId === APPLICATION_ID) return undefined;
  return applicationId === UNRELEASED_ID
    ? new HoldfastError(
        'STORE_UNSUPPORTED',
        `The SQLite store ${path} was made by a build from before 0.1.0, whose layout no version migrates. ` +
          'Delete the file with its jobs, or name another file; this one was not touched.',
        { store: 'sqlite' },
      )
    : new HoldfastError(
        'STORE_FOREIGN',
        `${path} is not a database of Holdfast. Name another file for the store; this one was not touched.`,
        { store: 'sqlite' },
      );
}

/**
 * Must run in a transaction: another process may create the tables between two statements, and a file with tables but without the
 * mark is foreign.
 */
function versionOf(db: Database, path: string): number {
  const ask = (text: string): number => db.prepare<[number]>(text).get()?.[0] ?? 0;
  // Check here too: `inspectFile` skips a file that this process has already open.
  const refusal = refusalOf(path, ask('PRAGMA application_id'));
  if (refusal !== undefined && ask('SELECT count(*) FROM sqlite_schema') > 0) throw refusal;
  const version = ask('PRAGMA user_version');
  if (version > SCHEMA_VERSION) {
    throw new HoldfastError(
      'STORE_NEWER',
      `The SQLite store ${path} has schema version ${version}, but this Holdfast knows versions up to ${SCHEMA_VERSION}. ` +
        'Upgrade the holdfast package here, or name another file; this one was not touched.',
      { store: 'sqlite' },
    );
  }
  return version;
}
