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
