// The tables, as a list of migrations in sql/schema/. The version of a file is its `user_version`; its `application_id` marks it as a Holdfast
// file.
import { HoldfastError } from '../../../errors.js';
import type { Database } from '../driver/load.js';
import { sql, sqlOf } from '../driver/sql.js';

/** "Hfst" */
export const APPLICATION_ID = 0x48667374;

/**
 * The numbers in `jobs.state`. Partial indexes contain these numbers. `behind`: waiting, but not the first job of its lock key
 * (key-groups.ts). The index of the finished jobs has the jobs in `waiting-children` too.
 */
export const STATE = { behind: 0, waiting: 1, delayed: 2, active: 3, completed: 4, failed: 5, 'waiting-children': 6 } as const;

/** Files of sql/schema/. A released migration never changes: append the next one. */
const MIGRATIONS = ['1-first', '2-keys-and-names', '3-graces'] as const;

export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * Columns and tables that were added without a new version, so that older processes can work beside newer ones. Each column is
 * nullable or has a default, and the migration finds it by its name. It finds a table by the last thing that the table's file makes: the table or its index.
 */
const ADDED_COLUMNS = [
  ['jobs', 'lostBy', 'add-lost-by'],
  ['jobs', 'marks', 'add-marks'],
  ['jobs', 'extras', 'add-extras'],
  ['queues', 'scheduled', 'add-scheduled'],
  ['queues', 'rules', 'add-rules'],
  ['queues', 'parents', 'add-parents'],
  ['revocations', 'kind', 'add-notice-kinds'],
] as const;
const ADDED_TABLES = [
  ['dedupEnding', 'add-dedup'],
  ['schedulesOwing', 'add-schedules'],
  ['metrics', 'add-metrics'],
  ['groupsIdle', 'add-groups'],
  ['linksOpen', 'add-links'],
  ['stepsByName', 'add-steps'],
] as const;

/**
 * Migrates the file to this version. If several processes start at once, the one that gets the write lock migrates. The others
 * check again under the lock and find the migration done. Throws SQLITE_BUSY while another process migrates; the caller retries.
 */
export function migrate(db: Database, path: string): void {
  const isDone = (): boolean => versionOf(db, path) === SCHEMA_VERSION && missing(db).length === 0;
  if (inTransaction(db, 'BEGIN', isDone)) return;
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    for (let version = versionOf(db, path); version < SCHEMA_VERSION; version++) {
      run(db, MIGRATIONS[version] as string);
    }
    for (const name of missing(db)) run(db, name);
    // Part of the first commit, before the file turns to WAL, so the first hundred bytes of the file always show that it is a
    // Holdfast file.
    run(db, 'mark-as-ours');
  });
}

function run(db: Database, name: string): void {
  db.exec(sqlOf(`schema/${name}`));
}

/** Returns the files that add the missing columns and tables. */
function missing(db: Database): string[] {
  const column = sql(db, 'schema/find-column', 'table column');
  const made = sql(db, 'schema/find-made', 'name');
  return [
    ...ADDED_COLUMNS.filter(([table, name]) => column.get(table, name) === undefined).map(([, , file]) => file),
    ...ADDED_TABLES.filter(([name]) => made.get(name) === undefined).map(([, file]) => file),
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

export function foreign(path: string): HoldfastError {
  return new HoldfastError(
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
  const isOurs = ask('PRAGMA application_id') === APPLICATION_ID || ask('SELECT count(*) FROM sqlite_schema') === 0;
  if (!isOurs) throw foreign(path);
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
