-- The schema.

-- name: schema/1-tables
-- The tables of the first layout. Columns have the names of the values in TypeScript.
-- States: 0 behind, 1 waiting, 2 delayed, 3 active, 4 completed.

-- The offset of the store's clock, of the last boot (clock.ts).
CREATE TABLE clock (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  boot TEXT NOT NULL,
  offset REAL NOT NULL
) STRICT;

-- Counters and counts, written once per commit. Counting rows instead took 60 ms with a million jobs.
-- maxActive: the cap; -1: none. keyed, scheduled: 1 once the queue has had a job with a key or of a group, or a schedule. parents: the
--   number of jobs in waiting-children. rules: settings that few queues have, as JSON (queue-state.ts).
CREATE TABLE queues (
  queue INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,
  touchedAt INTEGER NOT NULL DEFAULT 0,
  paused INTEGER NOT NULL DEFAULT 0,
  maxActive REAL NOT NULL DEFAULT -1,
  keyed INTEGER NOT NULL DEFAULT 0,
  scheduled INTEGER NOT NULL DEFAULT 0,
  limitedUntil INTEGER NOT NULL DEFAULT 0,
  windowEnds INTEGER NOT NULL DEFAULT 0,
  windowUsed INTEGER NOT NULL DEFAULT 0,
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
  failed INTEGER NOT NULL DEFAULT 0,
  parents INTEGER NOT NULL DEFAULT 0,
  rules TEXT
) STRICT;

-- The small columns that moves change come first, so SQLite reads them without reading through a long payload.
-- ord: the place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing.
-- session, fence: the token of the current owner; in a finished job, the token that finished it.
-- endsAt: the lock's own end; `timed` 0: the lock lives as long as its session, and at least until `endsAt`.
-- log…: the numbers of the first and of the next log row. lockKey: of the jobs with the same key, one at a time is active.
-- marks, extras: see ../marks.ts. lostBy: the session that lost the job last.
-- Each state has its own partial index, so a claim costs the same with ten waiting jobs and with a million, and a sweep reads dead locks
-- only, not all active jobs.
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
  marks INTEGER NOT NULL DEFAULT 0,
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
  lockKey TEXT,
  processedBy TEXT,
  lostBy TEXT,
  extras TEXT,
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
CREATE INDEX jobsKeyed ON jobs (queue, lockKey, state, priority, ord) WHERE lockKey IS NOT NULL;
CREATE INDEX jobsBehind ON jobs (queue, priority, ord) WHERE state = 0;

-- With the indexes by presence and suspicion, the cost of a probe depends on the number of processes and suspected sessions, not on the
-- number of sessions.
CREATE TABLE sessions (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  name TEXT NOT NULL,
  instance TEXT NOT NULL,
  presence TEXT,
  durationMs REAL NOT NULL,
  maxStalls REAL NOT NULL,
  graceMs REAL NOT NULL,
  slots INTEGER NOT NULL,
  since INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  renewals INTEGER NOT NULL DEFAULT 0,
  suspected INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0,
  reaped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessionsExpiring ON sessions (queue, expiresAt) WHERE reaped < 2;
CREATE INDEX sessionsByPresence ON sessions (queue, presence) WHERE reaped = 0 AND suspected = 0;
CREATE INDEX sessionsSuspected ON sessions (queue, expiresAt) WHERE reaped = 0 AND suspected = 1;

-- Notices for the owners of locks. kind: what a notice says; null: the lock was taken away.
CREATE TABLE revocations (
  queue INTEGER NOT NULL,
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  fence INTEGER NOT NULL,
  reason TEXT NOT NULL,
  kind TEXT,
  PRIMARY KEY (queue, session, number)
) STRICT, WITHOUT ROWID;

-- The last call of each caller.
CREATE TABLE callers (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  usedAt INTEGER NOT NULL,
  reply TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

-- The log rows of jobs.
CREATE TABLE logs (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- One row per commit, not one per job; `first` is the id of the first event in `body`.
CREATE TABLE events (
  queue INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (queue, first)
) STRICT, WITHOUT ROWID;

-- The holders of named locks.
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

-- The waiters for named locks, in the order of `place`.
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

-- Entries of deduplication (entries.ts).
CREATE TABLE dedup (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  until INTEGER,
  draft TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedupEnding ON dedup (queue, until) WHERE until IS NOT NULL;

-- The turns of groups, of each queue: the number of the last turn, and that of the jobs without a group.
CREATE TABLE turns (
  queue INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  plain INTEGER NOT NULL
) STRICT;

-- Groups of jobs (groups.ts). `number`: the place in line; null if the group is out of line. `place` has the numbers of PLACE in group.ts.
-- `restsUntil`: the end of the block or of the used window, if the group rests. `level`: the limit of all groups that keeps the group from
-- the ring; null if only its own settings do.
CREATE TABLE groups (
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
CREATE INDEX groupsInRing ON groups (queue, number, key) WHERE place = 1;
CREATE INDEX groupsResting ON groups (queue, restsUntil) WHERE place = 2;
CREATE INDEX groupsAside ON groups (queue, place, level, number, key) WHERE level IS NOT NULL;
CREATE INDEX groupsIdle ON groups (queue, max(limitedUntil, windowEnds)) WHERE place = 0;

-- The number of links of each parent, by their status (links.ts).
CREATE TABLE families (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  pending INTEGER NOT NULL,
  processed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  ignored INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

-- One row for each child of a parent. `status` has the numbers of LINK_STATES; `text`: the result of the child, or the reason of its
-- failure. Columns of the key follow in each index.
CREATE TABLE links (
  queue INTEGER NOT NULL,
  parent TEXT NOT NULL,
  childQueue TEXT NOT NULL,
  child TEXT NOT NULL,
  status INTEGER NOT NULL,
  text TEXT,
  PRIMARY KEY (queue, parent, childQueue, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX linksOpen ON links (queue, parent, status) WHERE status <> 1;

-- Finished jobs of each minute (minute-counts.ts). `kind`: the number of the state. `total`: all jobs up to this minute.
CREATE TABLE metrics (
  queue INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  count INTEGER NOT NULL,
  total INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, minute)
) STRICT, WITHOUT ROWID;

-- Schedules (schedules.ts). `nextJob`: the id of the next job.
CREATE TABLE schedules (
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
CREATE INDEX schedulesBySlot ON schedules (queue, at, id);
CREATE INDEX schedulesOwing ON schedules (queue, state) WHERE state = 'owing';

-- Steps of jobs (steps.ts). The numbers of a job's steps begin with 1 and have no gaps. `total`: bytes of the names and values of this step
-- and all before it.
CREATE TABLE steps (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  total INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX stepsByName ON steps (job, name);

PRAGMA user_version = 1;

-- name: schema/find-column
-- Returns a row if a table has a column.
SELECT 1 FROM pragma_table_info(:table) WHERE name = :column

-- name: schema/find-made
-- Returns a row if a table or an index is there.
SELECT 1 FROM sqlite_schema WHERE name = :name

-- name: schema/mark-as-ours
-- APPLICATION_ID = 1214661730: marks the file as a Holdfast file.
PRAGMA application_id = 1214661730;
