-- The tables of the first version.
-- queues: `head_…` is a place below which a list has no living row. A claim starts at the head instead of walking through dead rows: that
--   walk cost 2.7 ms more per claim after a million claims without a vacuum (0.36 s the first time).
--   The lists of prioritized and delayed jobs have no head, because a job may be put before it at any time: they depend on vacuum.
--   Counts and events lag behind: the changes since then are in `journal`.
-- jobs: the small columns that moves change come first, so that the server reads them without walking through a long payload.
--   ord      place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing
--   session, fence   the token of the current owner or, in a finished job, of the owner that finished it
--   ends_at  the lock's own expiry; if not `timed`, the lock lives as long as its session and at least until then
--   log_…    numbers of the first and of the next log row
--   Each list has its own stretch of a partial index. So a claim costs the same with ten waiting jobs and with a million, and a sweep
--   reads what died, not what is active. A query for one of these lists must ask for the order of its index. Otherwise the planner may
--   choose the primary key, which finds the same rows among all jobs of the queue, if its statistics are from a time when the queue was
--   small.
-- journal: one pending change per call that changed a queue: its changes to the counts, and its events. Writing one needs no lock on the
--   queue's row; `fold` applies them to queues and events (sql/fold.sql).
-- sessions: `presence` is the process, `vouched` the advisory lock that proves that the process lives; null while it has none. `attested`
--   numbers the statements of the process about `vouched`, so that a delayed statement does not undo a later one.
-- revocations: numbered when they are reported to their session, because only then no smaller number can still come.
-- Dead rows are many and young here, so vacuum starts early. Free space in the pages of jobs made no difference (fillfactor 40 to 100:
-- the same).
-- States: 1 waiting, 2 delayed, 3 active.
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
