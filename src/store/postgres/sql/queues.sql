-- Queues: their rows, settings, counts and versions.

-- name: ensure_queue
-- Creates a queue, if there is none of this name.
-- Called by: add.ts.
CREATE FUNCTION ensure_queue(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM queue_of(_name);
  RETURN 'null';
END
$body$;

-- name: queue_of
-- Returns the queue, and creates it on first use. Its job ids come from a sequence of its own. With a counter in the row, all producers
-- of the queue would wait for one another's commits. They would also wait for every open transaction in which a user adds a job.
-- Called by: add, configure, ensure_queue, open_session, schedule, write_jobs.
CREATE FUNCTION queue_of(_name text) RETURNS int LANGUAGE plpgsql AS $body$
DECLARE
  _queue int;
BEGIN
  LOOP
    SELECT queue INTO _queue FROM queues WHERE name = _name;
    IF FOUND THEN RETURN _queue; END IF;
    INSERT INTO queues (name) VALUES (_name) ON CONFLICT (name) DO NOTHING RETURNING queue INTO _queue;
    IF FOUND THEN
      PERFORM make_counter(_queue);
      RETURN _queue;
    END IF;
  END LOOP;
END
$body$;

-- name: make_counter
-- Creates the sequence of a queue's job ids. Runs with the rights of the schema's owner, so that a role that may only use the tables can
-- create new queues.
-- Called by: queue_of.
CREATE FUNCTION make_counter(_queue int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue;
  IF NOT FOUND THEN RETURN; END IF;
  EXECUTE format('CREATE SEQUENCE ids_%s', _queue);
  -- A role that may use the schema may use the queue, whichever role came first.
  EXECUTE format('GRANT ALL ON SEQUENCE ids_%s TO PUBLIC', _queue);
END
$body$;

-- name: queue_names
-- Returns the names of the queues after a name, in the order of their bytes.
-- Called by: inspect.ts.
CREATE FUNCTION queue_names(_after text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (SELECT coalesce(json_agg(name), '[]') FROM (SELECT name FROM queues WHERE name > _after ORDER BY name LIMIT _limit) q);
END
$body$;

-- name: configure
-- Changes the settings of a queue: QueueSettings, as JSON. A setting that is absent stays, and null removes one.
-- Called by: control.ts.
CREATE FUNCTION configure(_name text, _settings jsonb) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  -- Not in the statement, which would not see a row that it makes.
  _queue int := queue_of(_name);
  _blocked float8 := _settings ->> 'blockedMs';
  _was boolean;
  _change journal := no_change(_queue);
BEGIN
  -- Before the row of the queue, as in claims by id.
  IF _settings ? 'groups' OR _settings ? 'group' THEN
    PERFORM lock_groups(_queue, _settings #>> '{group,key}', _settings ? 'groups');
  END IF;
  SELECT paused INTO _was FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
  IF _settings ? 'metrics' THEN PERFORM keep_metrics(_queue, (_settings #>> '{metrics,points}')::int); END IF;
  UPDATE queues
  SET paused = coalesce((_settings ->> 'paused')::boolean, paused),
    limited_until = CASE WHEN _blocked > 0 THEN ceil(clock_ms() + _blocked) WHEN _blocked <= 0 THEN 0 ELSE limited_until END,
    window_ends = CASE WHEN _blocked <= 0 THEN 0 ELSE window_ends END,
    max_active = CASE WHEN _settings ? 'cap' THEN (_settings #>> '{cap,maxActive}')::float8 ELSE max_active END,
    rate_max = CASE WHEN _settings ? 'rate' THEN (_settings #>> '{rate,max}')::float8 ELSE rate_max END,
    rate_ms = CASE WHEN _settings ? 'rate' THEN (_settings #>> '{rate,durationMs}')::float8 ELSE rate_ms END,
    metric_points = CASE WHEN _settings ? 'metrics' THEN (_settings #>> '{metrics,points}')::int ELSE metric_points END
  WHERE queue = _queue;
  IF _settings ? 'groups' OR _settings ? 'group' THEN PERFORM set_groups(_queue, _settings); END IF;
  IF (_settings ->> 'paused')::boolean <> _was THEN
    _change.events := 1;
    _change.body := event(CASE WHEN _was THEN 'resumed' ELSE 'paused' END, NULL);
    -- include: note
  END IF;
  RETURN 'null';
END
$body$;

-- name: limited_ms
-- Returns the ms until claims are possible again; 0 if they are. `_max`: the limit of the claim.
-- Called by: claim, take.
CREATE FUNCTION limited_ms(_row queues, _max double precision, _now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
SELECT greatest(
  0, _row.limited_until - _now,
  CASE WHEN _row.window_ends > _now AND _row.window_used >= _max THEN _row.window_ends - _now ELSE 0 END
)
$body$;

-- name: forget
-- Keeps the counters of events and places: listeners read on from their event id, and jobs that still exist keep their order.
-- Called by: control.ts.
CREATE FUNCTION forget(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
BEGIN
  PERFORM lock_groups(queue, NULL, true) FROM queues WHERE name = _name AND grouped;
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM forget_schedules(_queue);
    PERFORM keep_metrics(_queue, NULL);
    PERFORM trim_log(_queue, 0);
    UPDATE queues
    SET paused = false, limited_until = 0, window_ends = 0, max_active = NULL, rate_max = NULL, rate_ms = NULL, metric_points = NULL
    WHERE queue = _queue;
    PERFORM forget_groups(_queue);
    DELETE FROM dedup WHERE queue = _queue;
    PERFORM setval(('ids_' || _queue)::regclass, 1, false);
  END IF;
  RETURN 'null';
END
$body$;

-- name: forget_caller
-- Forgets a caller.
-- Called by: control.ts.
CREATE FUNCTION forget_caller(_name text, _id text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  DELETE FROM callers
  WHERE ctid = ANY (
    ARRAY(
      SELECT c.ctid FROM callers c
      WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _id FOR UPDATE OF c SKIP LOCKED
    )
  );
  RETURN 'null';
END
$body$;

-- name: status
-- Returns counts and settings of a queue.
-- Called by: inspect.ts.
CREATE FUNCTION status(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _now bigint := floor(clock_ms());
  _row queues;
  _counts record;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT * INTO _counts FROM counts_of(_row.queue);
  RETURN json_build_object(
    'paused', _row.paused, 'counts', row_to_json(_counts), 'cap', _row.max_active, 'blocked', greatest(0, _row.limited_until - _now), 'rate',
    CASE WHEN _row.rate_max IS NOT NULL THEN json_build_object('max', _row.rate_max, 'durationMs', _row.rate_ms) END, 'window',
    CASE WHEN _row.window_ends > _now THEN json_build_object('used', _row.window_used, 'endsInMs', _row.window_ends - _now) END
  );
END
$body$;

-- name: counts_of
-- Returns exact counts from one snapshot, without reading jobs.
-- Called by: list_jobs, select_listed, status, take.
CREATE FUNCTION counts_of(
  _queue int, OUT waiting bigint, OUT prioritized bigint, OUT delayed bigint, OUT active bigint,
  OUT completed bigint, OUT failed bigint, OUT "waiting-children" bigint
) RETURNS record LANGUAGE plpgsql AS $body$
BEGIN
  SELECT q.waiting + coalesce(j.waiting, 0), q.prioritized + coalesce(j.prioritized, 0), q.delayed + coalesce(j.delayed, 0),
    q.active + coalesce(j.active, 0), q.completed + coalesce(j.completed, 0), q.failed + coalesce(j.failed, 0),
    q.parents + coalesce(j.parents, 0)
  INTO waiting, prioritized, delayed, active, completed, failed, "waiting-children"
  FROM queues q,
    LATERAL (
      SELECT sum(journal.waiting) waiting, sum(journal.prioritized) prioritized, sum(journal.delayed) delayed,
        sum(journal.active) active, sum(journal.completed) completed, sum(journal.failed) failed,
        sum(journal.parents) parents
      FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from
    ) j
  WHERE q.queue = _queue;
END
$body$;

-- name: versions_of
-- The versions are exact at the moment of the commit, however long a transaction was open. A number that a transaction draws before its
-- commit could be passed by a later one that commits first.
-- Called by: wake.ts.
CREATE FUNCTION versions_of(_names text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (
    SELECT json_agg(
      (
        SELECT q.last_event + coalesce(
          (SELECT sum(events) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
        ) || ' ' || q.paused || ' ' || q.limited_until || ' ' || coalesce(q.max_active, -1)
          || ' ' || coalesce(q.rate_max, -1)
        FROM queues q WHERE q.name = r.name
      )
      ORDER BY n
    )
    FROM unnest(_names) WITH ORDINALITY r(name, n)
  );
END
$body$;

-- name: notify
-- Sends notifications to other processes (wake.ts).
SELECT pg_notify(:channel, payload) FROM unnest(:payloads::text[]) payload

-- name: notify_changes
-- Sends notifications to other processes, with the commit.
-- Called by: driver/user-transaction.ts, wake.ts.
CREATE FUNCTION notify_changes(_channel text, _payloads text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM pg_notify(_channel, payload) FROM unnest(_payloads) payload;
  RETURN 'null';
END
$body$;

-- name: clock_ms
-- The store's clock: epoch ms with fractions. Callers round the present down and expiries up, so that nothing expires early.
-- Called by: many.
CREATE FUNCTION clock_ms() RETURNS double precision LANGUAGE sql VOLATILE AS $body$
SELECT date_part('epoch', clock_timestamp()) * 1000
$body$;

-- part: settings
-- The settings of every verb. Plans must not depend on statistics: a table is empty in one minute and has a million rows in the next. So
-- the planner may choose only index scans and nested loops. These also lock rows in the requested order, and a query that asks for an
-- order gets the index that has it.
-- The search path of the moment of creation is the schema's, and stays with the function.
SET search_path FROM CURRENT
SET plan_cache_mode TO 'force_generic_plan'
SET enable_seqscan TO 'off'
SET enable_bitmapscan TO 'off'
SET enable_hashjoin TO 'off'
SET enable_mergejoin TO 'off'
SET enable_material TO 'off'
SET enable_sort TO 'off'
-- Plans with disabled nodes look expensive, and the JIT would compile expensive plans for 100 ms and more.
SET jit TO 'off'
-- Less than the timeout of a call, so that the caller gets the real reason: a foreign transaction holds the lock.
SET lock_timeout TO '8s'

-- part: unlimited
-- True if nothing limits claims of the queue `q`, and its fences are those of this run of the server.
NOT q.paused AND q.limited_until <= _now AND q.window_ends <= _now AND q.max_active IS NULL AND q.rate_max IS NULL
  AND q.fenced_on = pg_postmaster_start_time()
