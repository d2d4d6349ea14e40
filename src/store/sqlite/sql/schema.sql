-- The schema.

-- name: schema/1-first
-- The tables of version 1. A released migration never changes.
--
-- jobs: the small columns that moves change come first, so SQLite reads them without reading through a long payload.
--   ord      place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing
--   session, fence   the token of the current owner; in a finished job, the token that finished it
--   endsAt   the lock's own end; `timed` 0: the lock lives as long as its session, and at least until `endsAt`
--   log…     numbers of the first and of the next log row
--   lockKey  of the jobs with the same key, one at a time is active
-- Each state has its own partial index, so a claim costs the same with ten waiting jobs and with a million, and a sweep reads dead
-- locks only, not all active jobs.
-- Columns have the names of the values in TypeScript.
-- queues: counters and counts, written once per commit. Counting rows instead took 60 ms with a million jobs.
-- events: one row per commit, not one per job; `first` is the id of the first event in `body`.
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

PRAGMA user_version = 1;

-- name: schema/2-keys-and-names
-- Version 2: lock keys, caps and named locks. named: the holders of named locks; places: the lock waiters, in the order of `place`.
-- lockKey: of the jobs with the same key, one at a time is active.
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

PRAGMA user_version = 2;

-- name: schema/3-graces
-- Version 3: graces. With these indexes the cost of a probe depends on the number of processes and suspected sessions, not on the
-- number of sessions.
ALTER TABLE sessions ADD COLUMN graceMs REAL NOT NULL DEFAULT 2000;
CREATE INDEX sessionsByPresence ON sessions (queue, presence) WHERE reaped = 0 AND suspected = 0;
CREATE INDEX sessionsSuspected ON sessions (queue, expiresAt) WHERE reaped = 0 AND suspected = 1;

PRAGMA user_version = 3;

-- name: schema/add-dedup
-- Entries of deduplication (entries.ts).
CREATE TABLE IF NOT EXISTS dedup (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  until INTEGER,
  draft TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dedupEnding ON dedup (queue, until) WHERE until IS NOT NULL;

-- name: schema/add-extras
-- Extras of a job (../marks.ts).
ALTER TABLE jobs ADD COLUMN extras TEXT;

-- name: schema/add-groups
-- Groups of jobs (groups.ts), and the turns of each queue. `number`: the place in line; null if the group is out of line. `place` has the
-- numbers of PLACE in group.ts. `restsUntil`: the end of the block or of the used window, if the group rests. `level`: the limit of all
-- groups that keeps the group from the ring; null if only its own settings do.
CREATE TABLE IF NOT EXISTS turns (
  queue INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  plain INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS groups (
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  number INTEGER,
  place INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  maxActive REAL,
  rateMax REAL,
  rateMs REAL,
  limitedUntil INTEGER NOT NULL,
  windowEnds INTEGER NOT NULL,
  windowUsed INTEGER NOT NULL,
  restsUntil INTEGER NOT NULL,
  level REAL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS groupsInRing ON groups (queue, number, key) WHERE place = 1;
CREATE INDEX IF NOT EXISTS groupsResting ON groups (queue, restsUntil) WHERE place = 2;
CREATE INDEX IF NOT EXISTS groupsAside ON groups (queue, place, level, number, key) WHERE level IS NOT NULL;
CREATE INDEX IF NOT EXISTS groupsIdle ON groups (queue, max(limitedUntil, windowEnds)) WHERE place = 0;

-- name: schema/add-links
-- Families (links.ts). families: the number of links of each parent, by their status. links: one row for each child of a parent. `status`
-- has the numbers of LINK_STATES; `text`: the result of the child, or the reason of its failure. Columns of the key follow in each index.
CREATE TABLE IF NOT EXISTS families (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  pending INTEGER NOT NULL,
  processed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS links (
  queue INTEGER NOT NULL,
  parent TEXT NOT NULL,
  childQueue TEXT NOT NULL,
  child TEXT NOT NULL,
  status INTEGER NOT NULL,
  text TEXT,
  PRIMARY KEY (queue, parent, childQueue, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS linksOpen ON links (queue, parent, status) WHERE status <> 1;

-- name: schema/add-lost-by
-- The session that lost the job last.
ALTER TABLE jobs ADD COLUMN lostBy TEXT;

-- name: schema/add-marks
-- Marks of a job (../marks.ts).
ALTER TABLE jobs ADD COLUMN marks INTEGER NOT NULL DEFAULT 0;

-- name: schema/add-metrics
-- Finished jobs of each minute (minute-counts.ts). `kind`: the number of the state. `total`: all jobs up to this minute.
CREATE TABLE IF NOT EXISTS metrics (
  queue INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  count INTEGER NOT NULL,
  total INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, minute)
) STRICT, WITHOUT ROWID;

-- name: schema/add-notice-kinds
-- What a notice says. Null: the lock was taken away. An older version takes each notice for that.
ALTER TABLE revocations ADD COLUMN kind TEXT;

-- name: schema/add-parents
-- Number of jobs in waiting-children.
ALTER TABLE queues ADD COLUMN parents INTEGER NOT NULL DEFAULT 0;

-- name: schema/add-rules
-- Settings that few queues have, as JSON (queue-state.ts): rate, metrics.
ALTER TABLE queues ADD COLUMN rules TEXT;

-- name: schema/add-scheduled
-- Whether the queue has had a schedule: 1 if so.
ALTER TABLE queues ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;

-- name: schema/add-schedules
-- Schedules (schedules.ts). `nextJob`: the id of the next job.
CREATE TABLE IF NOT EXISTS schedules (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  spec TEXT NOT NULL,
  serial INTEGER NOT NULL,
  state TEXT NOT NULL,
  at REAL NOT NULL,
  count INTEGER NOT NULL,
  nextJob TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS schedulesBySlot ON schedules (queue, at, id);
CREATE INDEX IF NOT EXISTS schedulesOwing ON schedules (queue, state) WHERE state = 'owing';

-- name: schema/add-steps
-- Steps of jobs (steps.ts). The numbers of a job's steps begin with 1 and have no gaps. `total`: bytes of the names and values of this
-- step and all before it.
CREATE TABLE IF NOT EXISTS steps (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  total INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS stepsByName ON steps (job, name);

-- name: schema/find-column
-- Returns a row if a table has a column.
SELECT 1 FROM pragma_table_info(:table) WHERE name = :column

-- name: schema/find-made
-- Returns a row if a table or an index is there.
SELECT 1 FROM sqlite_schema WHERE name = :name

-- name: schema/mark-as-ours
-- APPLICATION_ID = 1214673780: marks the file as a Holdfast file.
PRAGMA application_id = 1214673780;
