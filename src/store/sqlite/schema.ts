// The tables, as a list of migrations. The version of a file is its `user_version`; its `application_id` marks it as a Holdfast
// file.
// A released migration never changes: append the next one.
import { HoldfastError } from '../../errors.js';
import type { Database } from './driver.js';

/** "Hfst" */
export const APPLICATION_ID = 0x48667374;

/**
 * The numbers in `jobs.state`. Partial indexes contain these numbers. `behind`: waiting, but not the first job of its lock key
 * (lanes.ts).
 */
export const STATE = { behind: 0, waiting: 1, delayed: 2, active: 3, completed: 4, failed: 5 } as const;

/** SQL: sets the `state` of a job that starts to wait. A job with a key is behind until lanes.ts finds that it is the first. */
export const TO_WAITING = `state = CASE WHEN lockKey IS NULL THEN ${STATE.waiting} ELSE ${STATE.behind} END`;

// jobs: the small columns that moves change come first, so SQLite reads them without reading through a long payload.
//   ord      place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing
//   session, fence   the token of the current owner; in a finished job, the token that finished it
//   endsAt   the lock's own end; `timed` 0: the lock lives as long as its session, and at least until `endsAt`
//   log…     numbers of the first and of the next log row
//   lockKey  of the jobs with the same key, one at a time is active
// Each state has its own partial index, so a claim costs the same with ten waiting jobs and with a million, and a sweep reads dead
// locks only, not all active jobs.
// Columns have the names of the values in TypeScript.
// queues: counters and counts, written once per commit. Counting rows instead took 60 ms with a million jobs.
// events: one row per commit, not one per job; `first` is the id of the first event in `body`.
const FIRST = `
CREATE TABLE clock (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  boot TEXT NOT NULL,
  offset REAL NOT NULL
) STRICT;

CREATE TABLE queues (
  queue INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,
  touchedAt INTEGER NOT NULL DEFAULT 0,
  paused INTEGER NOT NULL DEFAULT 0,
  limitedUntil INTEGER NOT NULL DEFAULT 0,
  windowEnds INTEGER NOT NULL DEFAULT 0,
  windowUsed INTEGER NOT NULL DEFAULT 0,
  windowMax INTEGER NOT NULL DEFAULT 0,
  lastId INTEGER NOT NULL DEFAULT 0,
  front INTEGER NOT NULL DEFAULT 0,
  back INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  firstEvent INTEGER NOT NULL DEFAULT 1,
  lastEvent INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  prioritized INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE jobs (
  job INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  session TEXT,
  fence INTEGER,
  claimSeq INTEGER,
  endsAt INTEGER,
  timed INTEGER NOT NULL DEFAULT 0,
  dueAt INTEGER,
  delay REAL NOT NULL,
  addedAt INTEGER NOT NULL,
  timestamp REAL NOT NULL,
  attemptsMade INTEGER NOT NULL DEFAULT 0,
  attemptsStarted INTEGER NOT NULL DEFAULT 0,
  stalledCounter INTEGER NOT NULL DEFAULT 0,
  logFirst INTEGER NOT NULL DEFAULT 0,
  logNext INTEGER NOT NULL DEFAULT 0,
  processedOn INTEGER,
  finishedOn INTEGER,
  processedBy TEXT,
  name TEXT NOT NULL,
  opts TEXT NOT NULL,
  data TEXT NOT NULL,
  failedReason TEXT,
  stacktrace TEXT,
  progress TEXT,
  returnvalue TEXT
) STRICT;
CREATE UNIQUE INDEX jobsById ON jobs (queue, id);
CREATE INDEX jobsWaiting ON jobs (queue, priority, ord) WHERE state = 1;
CREATE INDEX jobsDelayed ON jobs (queue, dueAt, ord) WHERE state = 2;
CREATE INDEX jobsActive ON jobs (queue, session, claimSeq) WHERE state = 3;
CREATE INDEX jobsFinished ON jobs (queue, state, ord) WHERE state >= 4;
CREATE INDEX jobsEnding ON jobs (queue, endsAt) WHERE endsAt IS NOT NULL;

CREATE TABLE sessions (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  name TEXT NOT NULL,
  presence TEXT,
  durationMs REAL NOT NULL,
  maxStalls REAL NOT NULL,
  since INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  renewals INTEGER NOT NULL DEFAULT 0,
  suspected INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0,
  reaped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessionsExpiring ON sessions (queue, expiresAt) WHERE reaped < 2;

CREATE TABLE revocations (
  queue INTEGER NOT NULL,
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  fence INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (queue, session, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE callers (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  usedAt INTEGER NOT NULL,
  reply TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  queue INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (queue, first)
) STRICT, WITHOUT ROWID;
`;

// named: the holders of named locks; places: the lock waiters, in the order of `place`.
const KEYS_AND_NAMES = `
ALTER TABLE jobs ADD COLUMN lockKey TEXT;
CREATE INDEX jobsKeyed ON jobs (queue, lockKey, state, priority, ord) WHERE lockKey IS NOT NULL;
CREATE INDEX jobsBehind ON jobs (queue, priority, ord) WHERE state = 0;

ALTER TABLE queues ADD COLUMN maxActive REAL NOT NULL DEFAULT -1;
ALTER TABLE queues ADD COLUMN keyed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN instance TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN slots INTEGER NOT NULL DEFAULT 1;

CREATE TABLE named (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  session TEXT NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX namedBySession ON named (queue, session);

CREATE TABLE places (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  session TEXT NOT NULL,
  keptUntil INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX placesByToken ON places (queue, name, token);
CREATE INDEX placesInLine ON places (queue, name, place);
CREATE INDEX placesBySession ON places (queue, session);
`;

// With these indexes the cost of a probe depends on the number of processes and suspected sessions, not on the number of sessions.
const GRACES = `
ALTER TABLE sessions ADD COLUMN graceMs REAL NOT NULL DEFAULT 2000;
CREATE INDEX sessionsByPresence ON sessions (queue, presence) WHERE reaped = 0 AND suspected = 0;
CREATE INDEX sessionsSuspected ON sessions (queue, expiresAt) WHERE reaped = 0 AND suspected = 1;
`;

const MIGRATIONS: readonly string[] = [FIRST, KEYS_AND_NAMES, GRACES];

export const SCHEMA_VERSION = MIGRATIONS.length;

// Columns that were added without a new version, so that older processes can work beside newer ones. Each column is nullable, and
// the migration finds it by its name.
const ADDED_COLUMNS = [{ table: 'jobs', column: 'lostBy', type: 'TEXT' }] as const;

/**
 * Migrates the file to this version. If several processes start at once, the one that gets the write lock migrates. The others
 * check again under the lock and find the migration done. Throws SQLITE_BUSY while another process migrates; the caller retries.
 */
export function migrate(db: Database, path: string): void {
  const isDone = (): boolean => versionOf(db, path) === SCHEMA_VERSION && missingColumns(db).length === 0;
  if (inTransaction(db, 'BEGIN', isDone)) return;
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    for (let version = versionOf(db, path); version < SCHEMA_VERSION; version++) {
      db.exec(MIGRATIONS[version] as string);
      db.exec(`PRAGMA user_version = ${version + 1}`);
    }
    for (const { table, column, type } of missingColumns(db)) db.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
    // Part of the first commit, before the file turns to WAL, so the first hundred bytes of the file always show that it is a
    // Holdfast file.
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  });
}

function missingColumns(db: Database): (typeof ADDED_COLUMNS)[number][] {
  const find = (table: string, column: string) =>
    db.prepare(`SELECT 1 FROM pragma_table_info('${table}') WHERE name = '${column}'`);
  return ADDED_COLUMNS.filter(({ table, column }) => find(table, column).get() === undefined);
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
