// The tables, as a list of migrations. Never change a migration that was released: append the next one. The functions that work on the
// tables are in the files of the verbs; every migration recreates them (schema.ts).

/**
 * The numbers of `jobs.state`. Partial indexes name these numbers. `keyed` and `behind` also mean waiting, for jobs with a lock key: see
 * sql/first-of-keys.sql.
 */
export const STATE = { behind: -1, keyed: 0, waiting: 1, delayed: 2, active: 3, completed: 4, failed: 5 } as const;

// queues: `head_…` is a place below which a list has no living row. A claim starts at the head instead of walking through dead rows: that
//   walk cost 2.7 ms more per claim after a million claims without a vacuum (0.36 s the first time).
//   The lists of prioritized and delayed jobs have no head, because a job may be put before it at any time: they depend on vacuum.
//   Counts and events lag behind: the changes since then are in `journal`.
// jobs: the small columns that moves change come first, so that the server reads them without walking through a long payload.
//   ord      place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing
//   session, fence   the token of the current owner or, in a finished job, of the owner that finished it
//   ends_at  the lock's own expiry; if not `timed`, the lock lives as long as its session and at least until then
//   log_…    numbers of the first and of the next log row
//   Each list has its own stretch of a partial index. So a claim costs the same with ten waiting jobs and with a million, and a sweep
//   reads what died, not what is active. A query for one of these lists must ask for the order of its index. Otherwise the planner may
//   choose the primary key, which finds the same rows among all jobs of the queue, if its statistics are from a time when the queue was
//   small.
// journal: one pending change per call that changed a queue: its changes to the counts, and its events. Writing one needs no lock on the
//   queue's row; `fold` applies them to queues and events (sql/fold.sql).
// sessions: `presence` is the process, `vouched` the advisory lock that proves that the process lives; null while it has none. `attested`
//   numbers the statements of the process about `vouched`, so that a delayed statement does not undo a later one.
// revocations: numbered when they are reported to their session, because only then no smaller number can still come.
// Dead rows are many and young here, so vacuum starts early. Free space in the pages of jobs made no difference (fillfactor 40 to 100:
// the same).
const FIRST = `
CREATE TABLE holdfast_schema (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  version int NOT NULL,
  pruned_at bigint NOT NULL DEFAULT 0,
  served_by timestamptz,
  served_since bigint NOT NULL DEFAULT 0
);

CREATE SEQUENCE fences;
CREATE SEQUENCE places INCREMENT BY 65536;

CREATE TABLE queues (
  queue int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  paused boolean NOT NULL DEFAULT false,
  limited_until bigint NOT NULL DEFAULT 0,
  window_ends bigint NOT NULL DEFAULT 0,
  window_used double precision NOT NULL DEFAULT 0,
  window_max double precision NOT NULL DEFAULT 0,
  fenced_on timestamptz,
  head_waiting bigint NOT NULL DEFAULT 0,
  head_completed bigint NOT NULL DEFAULT 0,
  head_failed bigint NOT NULL DEFAULT 0,
  headed_at bigint NOT NULL DEFAULT 0,
  first_event bigint NOT NULL DEFAULT 1,
  last_event bigint NOT NULL DEFAULT 0,
  waiting bigint NOT NULL DEFAULT 0,
  prioritized bigint NOT NULL DEFAULT 0,
  delayed bigint NOT NULL DEFAULT 0,
  active bigint NOT NULL DEFAULT 0,
  completed bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE jobs (
  queue int NOT NULL,
  state smallint NOT NULL,
  timed boolean NOT NULL DEFAULT false,
  priority int NOT NULL,
  ord bigint NOT NULL,
  added bigint NOT NULL,
  added_at bigint NOT NULL,
  delay double precision NOT NULL,
  timestamp double precision NOT NULL,
  attempts_made int NOT NULL DEFAULT 0,
  attempts_started int NOT NULL DEFAULT 0,
  stalled_counter int NOT NULL DEFAULT 0,
  log_first int NOT NULL DEFAULT 0,
  log_next int NOT NULL DEFAULT 0,
  due_at bigint,
  ends_at bigint,
  fence bigint,
  claim_seq bigint,
  processed_on bigint,
  finished_on bigint,
  id text COLLATE "C" NOT NULL,
  session text COLLATE "C",
  processed_by text,
  name text NOT NULL,
  opts text NOT NULL,
  data text NOT NULL,
  failed_reason text,
  stacktrace text,
  progress text,
  returnvalue text,
  PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_waiting ON jobs (queue, priority, ord) WHERE state = 1;
CREATE INDEX jobs_delayed ON jobs (queue, due_at, ord) WHERE state = 2;
CREATE INDEX jobs_active ON jobs (queue, session, fence) WHERE state = 3;
CREATE INDEX jobs_finished ON jobs (queue, state, ord) WHERE state >= 4;
CREATE INDEX jobs_ending ON jobs (queue, ends_at) WHERE ends_at IS NOT NULL;

CREATE TABLE sessions (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  host text NOT NULL,
  pid double precision NOT NULL,
  name text NOT NULL,
  presence int,
  vouched int,
  attested int NOT NULL DEFAULT 0,
  duration_ms double precision NOT NULL,
  max_stalls double precision NOT NULL,
  since bigint NOT NULL,
  expires_at bigint NOT NULL,
  spared_until bigint,
  renewals bigint NOT NULL DEFAULT 0,
  suspected boolean NOT NULL DEFAULT false,
  revoked bigint NOT NULL DEFAULT 0,
  reaped smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX sessions_expiring ON sessions (queue, expires_at) WHERE reaped < 2;

CREATE TABLE revocations (
  queue int NOT NULL,
  session text COLLATE "C" NOT NULL,
  told_as bigint GENERATED ALWAYS AS IDENTITY,
  number bigint,
  job text NOT NULL,
  fence bigint NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (queue, session, told_as)
);

CREATE TABLE callers (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  used_at bigint NOT NULL,
  reply text,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE logs (
  queue int NOT NULL,
  job text COLLATE "C" NOT NULL,
  number int NOT NULL,
  row text NOT NULL,
  PRIMARY KEY (queue, job, number)
);

CREATE TABLE journal (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  waiting int NOT NULL DEFAULT 0,
  prioritized int NOT NULL DEFAULT 0,
  delayed int NOT NULL DEFAULT 0,
  active int NOT NULL DEFAULT 0,
  completed int NOT NULL DEFAULT 0,
  failed int NOT NULL DEFAULT 0,
  finishes int NOT NULL DEFAULT 0,
  events int NOT NULL DEFAULT 0,
  body text,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE events (
  queue int NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (queue, first)
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_threshold = 2000);
ALTER TABLE journal ALTER COLUMN body SET STORAGE MAIN;
ALTER TABLE events ALTER COLUMN body SET STORAGE MAIN;
`;

// jobs_taken enforces that at most one job of a key is active, even if other code is wrong.
// freed_keys: keys that may have come free since the last claim checked them (sql/first-of-keys.sql).
// named: the owner of each named lock; the row of a free name is never committed. lock_places: the lock waiters.
const KEYS_AND_NAMES = `
ALTER TABLE jobs ADD COLUMN lock_key text COLLATE "C";
CREATE INDEX jobs_keyed ON jobs (queue, priority, ord) WHERE state = 0;
CREATE INDEX jobs_behind ON jobs (queue, priority, ord) WHERE state = -1;
CREATE INDEX jobs_of_key ON jobs (queue, lock_key, priority, ord) WHERE lock_key IS NOT NULL AND state <= 0;
CREATE UNIQUE INDEX jobs_taken ON jobs (queue, lock_key) WHERE lock_key IS NOT NULL AND state = 3;

CREATE TABLE freed_keys (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  lock_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

ALTER TABLE queues ADD COLUMN max_active double precision;
ALTER TABLE sessions ADD COLUMN instance text NOT NULL DEFAULT '', ADD COLUMN slots double precision NOT NULL DEFAULT 1;

CREATE TABLE named (
  queue int NOT NULL,
  name text COLLATE "C" NOT NULL,
  token text COLLATE "C",
  session text COLLATE "C",
  fence bigint,
  since bigint,
  PRIMARY KEY (queue, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX named_of_session ON named (queue, session, name);

CREATE TABLE lock_places (
  queue int NOT NULL,
  name text COLLATE "C" NOT NULL,
  place bigint GENERATED ALWAYS AS IDENTITY,
  token text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  kept_until bigint NOT NULL,
  PRIMARY KEY (queue, name, place)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX lock_places_of_session ON lock_places (queue, session, place);
`;

// Neither index has a column that a renewal changes, so a renewal still writes only one row.
const GRACES = `
ALTER TABLE sessions ADD COLUMN grace_ms double precision NOT NULL DEFAULT 2000;
CREATE INDEX sessions_vouched ON sessions (queue, vouched) WHERE reaped = 0 AND NOT suspected AND vouched IS NOT NULL;
CREATE INDEX sessions_suspected ON sessions (queue) WHERE reaped = 0 AND suspected;
`;

/** An empty migration: it only recreates the functions. */
const NEW_FUNCTIONS = '';

// sessions.look_at: never after expires_at. A renewal does not change it, so a renewal changes no index: 25 to 30 µs less of the server's
//   170. Sweeps move it on (sql/reap.sql). Without any index, a sweep would take 4.5 ms to read 10,000 sessions.
// jobs: one index instead of three for waiting jobs. Every write opens each index and evaluates its condition: about 10 µs per index.
// The migration changes sessions before jobs, in the lock order of the verbs.
const FEWER_INDEXES = `
DROP INDEX sessions_expiring;
ALTER TABLE sessions ADD COLUMN look_at bigint NOT NULL DEFAULT 0;
CREATE INDEX sessions_looked_at ON sessions (queue, look_at) WHERE reaped < 2;
DROP INDEX jobs_waiting, jobs_keyed, jobs_behind;
CREATE INDEX jobs_waiting ON jobs (queue, state, priority, ord) WHERE state <= 1;
`;

// holdfast_schema: `revision` counts the migrations. `version` is READABLE_SINCE of the process that ran the last one: older processes
// compare it with their own number of migrations.
const REVISIONS = `
ALTER TABLE holdfast_schema ADD COLUMN revision int NOT NULL DEFAULT 0;
`;

// dead_ranges: where lists of a queue have no living row (sql/find-dead-ranges.sql). A queue has a row only while skipping helps. `place`, `freed`
// and `journal_number` are the last numbers drawn, at the time of writing, for places, freed keys and the journal. `journal_writers` are
// the transactions that had written to the journal then, and had not ended.
const DEAD_RANGES = `
CREATE TABLE dead_ranges (
  queue int PRIMARY KEY,
  priorities int[] NOT NULL,
  heads bigint[] NOT NULL,
  head_keyed bigint NOT NULL,
  head_freed bigint NOT NULL,
  place bigint NOT NULL,
  freed bigint NOT NULL,
  journal_from bigint NOT NULL,
  journal_number bigint NOT NULL,
  journal_writers text[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`;

// callers.look_at: when the row may be too old. A call never changes it, so a call changes no index (callers.ts).
const CALLERS_BY_AGE = `
ALTER TABLE callers ADD COLUMN look_at bigint NOT NULL DEFAULT 0;
CREATE INDEX callers_looked_at ON callers (look_at);
`;

// jobs.lost_by: the owner that lost the job last, and how that was found, as JSON text.
const LOSSES = `
ALTER TABLE jobs ADD COLUMN lost_by text;
`;

// queues.journal_from: as in dead_ranges, for claims and settles, which read the row of the queue anyway. Reading another table cost them
// 2 to 4 % of the server's time.
const JOURNAL_FROM = `
ALTER TABLE queues ADD COLUMN journal_from bigint NOT NULL DEFAULT 0;
`;

export const MIGRATIONS: readonly string[] = [
  FIRST,
  KEYS_AND_NAMES,
  GRACES,
  NEW_FUNCTIONS,
  FEWER_INDEXES,
  NEW_FUNCTIONS,
  REVISIONS,
  DEAD_RANGES,
  CALLERS_BY_AGE,
  LOSSES,
  JOURNAL_FROM,
  NEW_FUNCTIONS,
  NEW_FUNCTIONS,
  NEW_FUNCTIONS,
];

/**
 * Processes that know this many migrations can work on the newest schema, beside processes that know all of them. So migrations only add,
 * and functions keep their names, their parameters (new ones come last and have defaults) and what they return. A migration that breaks
 * this rule sets the constant to its own number; older processes then refuse the schema.
 */
export const READABLE_SINCE = 6;
