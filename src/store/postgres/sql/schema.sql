-- The schema.

-- name: schema/tables
-- The tables of the first layout. Dead rows are many and young here, so vacuum starts early. Free space in the pages of jobs made no
-- difference (fillfactor 40 to 100: the same).
-- States: 0 keyed, 1 waiting, 2 delayed, 3 active.

-- `revision` counts the migrations. `layout` is READABLE_SINCE of the process that ran the last one: processes of earlier versions compare it
-- with their own number of migrations.
CREATE TABLE holdfast_schema (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  layout int NOT NULL,
  pruned_at bigint NOT NULL DEFAULT 0,
  served_by timestamptz,
  served_since bigint NOT NULL DEFAULT 0,
  revision int NOT NULL DEFAULT 0
);

-- Counts and events lag behind: the changes since then are in `journal`.
-- head_…: a place below which a list has no living row. A claim starts at the head instead of walking through dead rows: that walk cost
--   2.7 ms more per claim after a million claims without a vacuum (0.36 s the first time). The lists of prioritized and delayed jobs have
--   no head, because a job may be put before it at any time: they depend on vacuum.
-- journal_from: as in dead_ranges, for claims and settles, which read this row anyway. Reading another table cost them 2 to 4 % of the
--   server's time.
-- scheduled: the queue has or had schedules, or sends or gets messages. Without it, claims look neither for schedules that owe a job nor
--   for messages. grouped: the queue has or had jobs of groups. Without it, claims do not look for groups.
-- rate_max, rate_ms: the rate of the queue; null: none. metric_points: how many minutes of each kind are kept; null: the queue does not
--   count. group_max, group_rate_max, group_rate_ms: the limits of each group that has none of its own. parents: the jobs in
--   waiting-children.
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
  failed bigint NOT NULL DEFAULT 0,
  max_active double precision,
  journal_from bigint NOT NULL DEFAULT 0,
  scheduled boolean NOT NULL DEFAULT false,
  rate_max double precision,
  rate_ms double precision,
  metric_points int,
  grouped boolean NOT NULL DEFAULT false,
  group_max double precision,
  group_rate_max double precision,
  group_rate_ms double precision,
  parents bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The small columns that moves change come first, so that the server reads them without walking through a long payload.
-- ord: the place within its state: waiting front to back (below 0 = put to the front), finished in the order of finishing.
-- session, fence: the token of the current owner or, in a finished job, of the owner that finished it.
-- ends_at: the lock's own expiry; if not `timed`, the lock lives as long as its session and at least until then.
-- log_…: the numbers of the first and of the next log row. lost_by: the owner that lost the job last, and how that was found, as JSON text.
-- marks, extras: see marks.ts. lock_key: a waiting job of a group has the state -2 and the key of the group here, so that jobs_of_key finds
--   the first job of each group. In all other states the key of the group is in the extras alone: jobs_taken must not apply to it.
-- Each list has its own stretch of a partial index. So a claim costs the same with ten waiting jobs and with a million, and a sweep reads
-- what died, not what is active. A query for one of these lists must ask for the order of its index. Otherwise the planner may choose the
-- primary key, which finds the same rows among all jobs of the queue, if its statistics are from a time when the queue was small. Every
-- write opens each index and evaluates its condition, about 10 µs per index: so all waiting jobs share one.
-- jobs_taken enforces that at most one job of a key is active, even if other code is wrong.
CREATE SEQUENCE fences;
CREATE SEQUENCE places INCREMENT BY 65536;
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
  lock_key text COLLATE "C",
  lost_by text,
  marks smallint NOT NULL DEFAULT 0,
  extras text,
  PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_waiting ON jobs (queue, state, priority, ord) WHERE state <= 1;
CREATE INDEX jobs_delayed ON jobs (queue, due_at, ord) WHERE state = 2;
CREATE INDEX jobs_active ON jobs (queue, session, fence) WHERE state = 3;
CREATE INDEX jobs_finished ON jobs (queue, state, ord) WHERE state >= 4;
CREATE INDEX jobs_ending ON jobs (queue, ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX jobs_of_key ON jobs (queue, lock_key, priority, ord) WHERE lock_key IS NOT NULL AND state <= 0;
CREATE UNIQUE INDEX jobs_taken ON jobs (queue, lock_key) WHERE lock_key IS NOT NULL AND state = 3;

-- presence: the process. vouched: the advisory lock that proves that the process lives; null while it has none. attested: numbers the
--   statements of the process about `vouched`, so that a delayed statement does not undo a later one.
-- look_at: never after expires_at. A renewal does not change it, so a renewal changes no index: 25 to 30 µs less of the server's 170. Sweeps
--   move it on (reap). Without any index, a sweep would take 4.5 ms to read 10,000 sessions.
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
  instance text NOT NULL DEFAULT '',
  slots double precision NOT NULL DEFAULT 1,
  grace_ms double precision NOT NULL DEFAULT 2000,
  look_at bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX sessions_vouched ON sessions (queue, vouched) WHERE reaped = 0 AND NOT suspected AND vouched IS NOT NULL;
CREATE INDEX sessions_suspected ON sessions (queue) WHERE reaped = 0 AND suspected;
CREATE INDEX sessions_looked_at ON sessions (queue, look_at) WHERE reaped < 2;

-- Notices for the owners of locks. They are numbered when they are reported to their session, because only then no smaller number can
-- still come. kind: see Notice in contract/sessions.ts.
CREATE TABLE revocations (
  queue int NOT NULL,
  session text COLLATE "C" NOT NULL,
  told_as bigint GENERATED ALWAYS AS IDENTITY,
  number bigint,
  job text NOT NULL,
  fence bigint NOT NULL,
  reason text NOT NULL,
  kind text NOT NULL DEFAULT 'revoked',
  PRIMARY KEY (queue, session, told_as)
);

-- look_at: when the row may be too old. A call never changes it, so a call changes no index (prune_callers).
CREATE TABLE callers (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  used_at bigint NOT NULL,
  reply text,
  look_at bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX callers_looked_at ON callers (look_at);

-- The log rows of jobs.
CREATE TABLE logs (
  queue int NOT NULL,
  job text COLLATE "C" NOT NULL,
  number int NOT NULL,
  row text NOT NULL,
  PRIMARY KEY (queue, job, number)
);

-- One pending change per call that changed a queue: its changes to the counts, and its events. Writing one needs no lock on the queue's
-- row; `fold` applies them to queues and events.
-- minute, completions, failures: the jobs that a call finished, and the minute of that; null in a queue that does not count. So settles do
--   not meet on one row: `fold` adds them up. parents: the change of the jobs in waiting-children; null: none.
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
  minute int,
  completions int,
  failures int,
  parents int,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE journal ALTER COLUMN body SET STORAGE MAIN;

-- The log of events, many in a row.
CREATE TABLE events (
  queue int NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (queue, first)
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_threshold = 2000);
ALTER TABLE events ALTER COLUMN body SET STORAGE MAIN;

-- Keys that may have come free since the last claim checked them (first_of_keys).
CREATE TABLE freed_keys (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  lock_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The owner of each named lock; the row of a free name is never committed.
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

-- The waiters for named locks. A place is found by its token.
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
CREATE INDEX lock_places_by_token ON lock_places (queue, name, token);

-- Where lists of a queue have no living row (find_dead_ranges). A queue has a row only while skipping helps. `place`, `freed` and
-- `journal_number` are the last numbers drawn, at the time of writing, for places, freed keys and the journal. `journal_writers` are the
-- transactions that had written to the journal then, and had not ended.
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

-- The entries of deduplication ids. `job` owns the entry, `until` is its end, and `draft` a job to add when the owner ends: its values, as
-- JSON.
CREATE TABLE dedup (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  job text COLLATE "C" NOT NULL,
  until bigint,
  draft text,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX dedup_until ON dedup (until) WHERE until IS NOT NULL;

-- See contract/scheduling.ts. `next_job` is the next job, `at` and `count` are those of its slot. A row with version 0 is never committed.
CREATE TABLE schedules (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  spec text NOT NULL DEFAULT '',
  serial boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'running',
  at double precision NOT NULL DEFAULT 0,
  count double precision NOT NULL DEFAULT 0,
  next_job text COLLATE "C",
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX schedules_by_slot ON schedules (queue, at, id);
CREATE INDEX schedules_owing ON schedules (queue, version) WHERE state = 'owing';

-- The finished jobs of each minute since the epoch, if there were any. The row with minute -1 has all jobs before the kept points. The
-- first kept point has a row even if it is 0.
CREATE TABLE metrics (
  queue int NOT NULL,
  kind text COLLATE "C" NOT NULL,
  minute int NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (queue, kind, minute)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- See contract/groups.ts. `turn` is the number of the group in line; null: not in line. `place` is false while the group is paused or full.
-- `rests_until` is the end of its block or of its used window. Both are as true as the row: a claim first applies the notes of the group.
-- The row '' stands for the jobs without a group: `turn` is their number, and `last_turn` that of the last turn of the queue.
-- Only a transaction that holds the lock of a group's row changes the row, or deletes notes of the group. Claims skip rows that other
-- transactions hold, so a claim goes on with the next group. Rows of groups are made under an advisory lock (groups_lock).
CREATE TABLE groups (
  queue int NOT NULL,
  key text COLLATE "C" NOT NULL,
  turn bigint,
  last_turn bigint,
  active int NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,
  max_active double precision,
  rate_max double precision,
  rate_ms double precision,
  blocked_until bigint NOT NULL DEFAULT 0,
  window_ends bigint NOT NULL DEFAULT 0,
  window_used double precision NOT NULL DEFAULT 0,
  place boolean NOT NULL DEFAULT true,
  rests_until bigint,
  PRIMARY KEY (queue, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX groups_in_turn ON groups (queue, turn, key) WHERE turn IS NOT NULL AND place AND rests_until IS NULL;
CREATE INDEX groups_resting ON groups (queue, rests_until) WHERE rests_until IS NOT NULL;

-- Jobs of a group that left active (`freed`), or began to wait (`entered`), since the last claim applied them. So adds and settles never
-- wait for a lock of a group, and a user's transaction that adds jobs holds up no claim. A settle writes no notes for the groups whose
-- rows it could lock.
CREATE TABLE group_notes (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  key text COLLATE "C" NOT NULL,
  freed int NOT NULL,
  entered boolean NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX group_notes_of_key ON group_notes (queue, key);

-- How many links of a parent are in each state (contract/families.ts). A row of its own, so that plain jobs stay as they are.
CREATE TABLE families (
  queue int NOT NULL,
  parent text COLLATE "C" NOT NULL,
  pending int NOT NULL DEFAULT 0,
  processed int NOT NULL DEFAULT 0,
  failed int NOT NULL DEFAULT 0,
  ignored int NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, parent)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row for each child of a parent. `since` is the number that was drawn when the link was made, and `sent` that of the last message that
-- changed the link. Only a transaction that holds the lock of the parent's job changes its links or its row in families.
CREATE TABLE links (
  queue int NOT NULL,
  parent text COLLATE "C" NOT NULL,
  child_queue int NOT NULL,
  child text COLLATE "C" NOT NULL,
  state text NOT NULL DEFAULT 'pending',
  since bigint NOT NULL,
  sent bigint NOT NULL,
  text text,
  PRIMARY KEY (queue, parent, child_queue, child)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX links_pending ON links (queue, parent, child_queue, child) WHERE state = 'pending';

-- Messages to jobs of any queue, which relay delivers. A message about a child draws its number while its transaction holds the lock of the
-- child's job, so the numbers of one child grow in the order of its commits.
CREATE SEQUENCE messages;
CREATE TABLE outbox (
  queue int NOT NULL,
  number bigint NOT NULL DEFAULT nextval('messages'),
  to_queue text COLLATE "C" NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_by_receiver ON outbox (to_queue, number);

-- The steps of jobs (contract/steps.ts). `ord` counts the steps of a job from 1, and `upto` is the bytes of its names and values up to this
-- one. So the last row of a job has both sums. Only a transaction that holds the lock of the job changes its steps. The index has hashes,
-- because names can be long.
CREATE TABLE steps (
  queue int NOT NULL,
  job text COLLATE "C" NOT NULL,
  ord int NOT NULL,
  upto int NOT NULL,
  name text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (queue, job, ord)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX steps_by_name ON steps (queue, job, hashtextextended(name, 0));

-- name: schema/contents
-- Returns whether a schema is ours ($1: the quoted name of our table holdfast_schema in it), and how many relations it has ($2: its name).
SELECT to_regclass($1) IS NOT NULL,
  (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2)::int

-- name: schema/durability
-- Returns the settings with which acknowledged writes can be lost (warnings.ts).
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')

-- name: schema/facts
-- Returns what schema.ts checks before it uses a server: version, whether it takes writes, encoding, isolation, the number of the process
-- that serves the connection, and the names for error messages.
SELECT current_setting('server_version_num')::int,
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
  current_setting('server_encoding'), current_setting('transaction_isolation'),
  pg_backend_pid(), current_database(), current_user

-- name: schema/hold-presence
-- Takes the advisory lock that proves that a process lives ($1: its number in sessions.vouched). Returns false if another process has it.
-- ADVISORY.presence = 1214673780
SELECT pg_try_advisory_lock(1214673780, $1)

-- name: schema/keepalives
-- Lets the server notice within about 15 s that a host is gone. Most systems default to two hours.
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 5

-- name: schema/lock-schema
-- Waits until no other process migrates the schema of this name ($1).
-- ADVISORY.migration = 1214673781
SELECT pg_advisory_xact_lock(1214673781, hashtext($1))

-- name: schema/replace-functions
-- Replaces the functions of the schema, which belongs to Holdfast alone, by those of this version: the setting holdfast.functions has their
-- texts by name. If only its body is new, a function keeps its oid, so that a plan which another connection makes during the migration
-- stays valid. A function that cannot be replaced is dropped first.
DO $do$
DECLARE
  _texts jsonb := current_setting('holdfast.functions');
  _here oid := quote_ident(current_schema())::regnamespace;
  _function record;
  _old regprocedure;
  _can_replace boolean;
BEGIN
  FOR _old IN SELECT oid FROM pg_proc WHERE pronamespace = _here AND NOT _texts ? proname LOOP
    EXECUTE 'DROP FUNCTION ' || _old || ' CASCADE';
  END LOOP;
  FOR _function IN
    SELECT t.key AS name, t.value AS text, ARRAY(SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = _here AND proname = t.key) AS olds
    FROM jsonb_each_text(_texts) t
  LOOP
    _can_replace := true;
    BEGIN
      EXECUTE regexp_replace(_function.text, '^CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION', 'n');
      -- With other types of parameters, there are two functions of this name now.
      CONTINUE WHEN (SELECT count(*) FROM pg_proc WHERE pronamespace = _here AND proname = _function.name) = cardinality(_function.olds);
    EXCEPTION
      -- The names of its parameters, or the type that it returns, are new.
      WHEN invalid_function_definition THEN _can_replace := false;
    END;
    FOREACH _old IN ARRAY _function.olds LOOP EXECUTE 'DROP FUNCTION ' || _old || ' CASCADE'; END LOOP;
    IF NOT _can_replace THEN EXECUTE _function.text; END IF;
  END LOOP;
END $do$
