-- Schedules, and their next jobs.

-- name: schedule
-- Changes schedules, one after the other. A schedule has next_job and version changed together, so the next job of a version is locked here
-- before its schedule (lock_schedules).
-- _jobs: the job of each slot, null without one; the next arrays are its values.
-- Called by: schedule.ts.
CREATE FUNCTION schedule(
  _name text, _kinds text[], _ids text[], _versions bigint[], _specs text[], _serials boolean[], _ats float8[],
  _counts float8[], _jobs text[], _names text[], _data text[], _opts text[], _priorities int[], _delays float8[],
  _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _made boolean[] := ARRAY(SELECT kind = 'put' AND version = 0 FROM unnest(_kinds, _versions) WITH ORDINALITY c(kind, version, n) ORDER BY n);
  _replies json[] := '{}';
  _row schedules;
  _status text;
  _started boolean;
  _keeps boolean;
  _change journal;
  _got record;
BEGIN
  -- A transaction that a user leaves open may hold the id of a job.
  PERFORM set_config('lock_timeout', '2s', true);
  IF true = ANY (_made) THEN
    _queue := queue_of(_name);
    UPDATE queues SET scheduled = true WHERE queue = _queue AND NOT scheduled;
  END IF;
  PERFORM lock_schedules(_queue, _ids, _made);
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _row := lock_schedule(_queue, _ids[_n], _made[_n]);
    -- Sets _status of the change _n of the schedule _row, as far as it is known before its slot is put; _started: whether the next job has
    -- started; null: there is no next job; _keeps: whether it stays the next job.
    -- States: 3 active.
    _started := (SELECT state + 0 = 3 OR attempts_started > 0 FROM jobs WHERE queue = _queue AND id = _row.next_job);
    _keeps := _kinds[_n] = 'put' AND _jobs[_n] IS NOT NULL AND _serials[_n] AND coalesce(_row.serial AND _started, false);
    _status := CASE WHEN coalesce(_row.version, 0) = 0 THEN CASE WHEN _made[_n] THEN 'done' ELSE 'missing' END
      WHEN _row.version <> _versions[_n] OR _kinds[_n] = 'advance' AND _row.state <> 'owing' THEN 'stale' ELSE 'done' END;
    IF _status = 'done' AND _jobs[_n] IS NOT NULL AND NOT _keeps THEN
      -- Puts the job of the slot _n, and removes the next job that it replaces. If the id is taken, nothing else changes.
      IF _jobs[_n] = _row.next_job AND NOT _started THEN
        _change := dismiss(_queue, _row.next_job, true, no_change(_queue));
        -- include: note
      END IF;
      _got := put_jobs(
        _queue, _clock, _jobs[_n:_n], _names[_n:_n], _data[_n:_n], _opts[_n:_n], _priorities[_n:_n], _delays[_n:_n], _lifos[_n:_n],
        _timestamps[_n:_n], CASE WHEN _keys[_n] IS NOT NULL THEN _keys[_n:_n] END, _marks[_n:_n], _extras[_n:_n], no_change(_queue)
      );
      IF _got._made IS NOT NULL THEN
        _status := 'taken';
      ELSIF _row.next_job <> _jobs[_n] THEN
        -- Recorded first: the events of the removal come before those of the new job.
        _change := dismiss(_queue, _row.next_job, NOT _started, no_change(_queue));
        -- include: note
      END IF;
      _change := _got._change;
      -- include: note
    END IF;
    IF _status = 'done' THEN
      -- Applies the change _n to the schedule _row, whose slot has been put. A next job that the slot did not replace is removed, or
      -- becomes an ordinary job.
      -- States: 2 delayed.
      IF _jobs[_n] IS NULL AND _row.next_job IS NOT NULL AND NOT (_kinds[_n] = 'pause' AND coalesce(_started, false)) THEN
        _change := dismiss(
          _queue, _row.next_job,
          NOT _started AND (
            _kinds[_n] <> 'remove' OR (SELECT state + 0 = 2 FROM jobs WHERE queue = _queue AND id = _row.next_job)
          ), no_change(_queue)
        );
        -- include: note
      END IF;
      IF _kinds[_n] = 'remove' THEN
        DELETE FROM schedules WHERE queue = _queue AND id = _ids[_n];
        _row := NULL;
      ELSE
        UPDATE schedules
        SET version = CASE WHEN version = 0 THEN floor(_clock)::bigint ELSE version + 1 END, spec = coalesce(_specs[_n], spec),
          serial = coalesce(_serials[_n], serial),
          state = CASE WHEN _kinds[_n] = 'pause' THEN 'paused' WHEN _jobs[_n] IS NULL THEN 'ended' ELSE 'running' END,
          at = CASE WHEN _keeps THEN at ELSE coalesce(_ats[_n], at) END,
          count = CASE WHEN _keeps THEN count ELSE coalesce(_counts[_n], count) END
            - CASE WHEN _kinds[_n] = 'pause' AND NOT _started THEN 1 ELSE 0 END,
          next_job = CASE WHEN _keeps OR _kinds[_n] = 'pause' AND _started THEN next_job ELSE _jobs[_n] END
        WHERE queue = _queue AND id = _ids[_n] RETURNING * INTO _row;
      END IF;
    END IF;
    _replies := _replies || json_build_object(
      'status', _status, 'record', CASE WHEN _row.version > 0 THEN schedule_record(_row) END
    );
  END LOOP;
  DELETE FROM schedules WHERE queue = _queue AND id = ANY (_ids) AND version = 0;
  -- include: fold-sometimes
  RETURN json_strip_nulls(to_json(_replies));
END
$body$;

-- name: schedule_record
-- Returns a schedule as ScheduleRecord in schedule-record.ts. Absent fields are null.
-- Called by: schedule, schedules_of, start_runs.
CREATE FUNCTION schedule_record(_row schedules) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_object(
  'id', _row.id, 'version', _row.version, 'spec', _row.spec, 'serial', _row.serial, 'state', _row.state, 'at', _row.at, 'count',
  _row.count, 'nextJobId', _row.next_job
)
$body$;

-- name: schedules_of
-- Returns schedules by their ids, those that are owing (at most _limit), or a part of all by their slots; and the clock. If all
-- parameters but _name are null, it returns how many schedules there are.
-- Called by: schedule.ts.
CREATE FUNCTION schedules_of(
  _name text, _ids text[], _limit bigint, _start bigint, _end bigint, _asc boolean
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _count bigint := CASE WHEN _end >= 0 THEN greatest(0, _end - _start + 1) END;
  _found json;
  _all bigint;
BEGIN
  IF _ids IS NOT NULL THEN
    SELECT json_agg(schedule_record(s) ORDER BY n) INTO _found FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT * FROM schedules WHERE queue = _queue AND id = o.id OFFSET 0) s;
  ELSIF _limit IS NOT NULL THEN
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue AND state = 'owing' ORDER BY version LIMIT _limit) s;
  ELSIF _start IS NULL THEN
    _all := (SELECT count(*) FROM schedules WHERE queue = _queue);
  ELSIF _asc THEN
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue ORDER BY at, id LIMIT _count OFFSET _start) s;
  ELSE
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue ORDER BY at DESC, id DESC LIMIT _count OFFSET _start) s;
  END IF;
  RETURN json_strip_nulls(
    json_build_object(
      'records', coalesce(_found, '[]'), 'count', _all, 'now', floor(clock_ms())::bigint
    )
  );
END
$body$;

-- name: lock_schedule
-- Locks a schedule. _made: if there is none, it makes one with version 0, so that two calls that make it run one after the other.
-- Called by: lock_schedules, schedule.
CREATE FUNCTION lock_schedule(_queue int, _id text, _made boolean) RETURNS schedules LANGUAGE plpgsql AS $body$
DECLARE
  _row schedules;
BEGIN
  LOOP
    SELECT * INTO _row FROM schedules WHERE queue = _queue AND id = _id FOR UPDATE;
    IF FOUND OR NOT _made THEN RETURN _row; END IF;
    INSERT INTO schedules (queue, id) VALUES (_queue, _id) ON CONFLICT DO NOTHING;
  END LOOP;
END
$body$;

-- name: lock_schedules
-- Locks the next jobs of schedules in the order of their ids, then the schedules in the order of theirs: claims and ends lock the job first
-- too. If a claim takes a next job meanwhile, the schedule has another version afterwards, and the change is stale.
-- _made: which of them are made if they do not exist.
-- Called by: schedule.
CREATE FUNCTION lock_schedules(_queue int, _schedules text[], _made boolean[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _ids text[] := ARRAY(
    SELECT s.next_job FROM unnest(_schedules) o(id),
      LATERAL (SELECT next_job FROM schedules WHERE queue = _queue AND id = o.id OFFSET 0) s
    WHERE s.next_job IS NOT NULL
  );
  _locked text[];
BEGIN
  -- include: lock-jobs
  PERFORM lock_schedule(_queue, id, made)
  FROM (
    SELECT id, bool_or(made) AS made FROM unnest(_schedules, _made) o(id, made) GROUP BY id ORDER BY id COLLATE "C" OFFSET 0
  ) o;
END
$body$;

-- name: owe
-- Lets the next job of a schedule be an ordinary job. The schedule then owes a job, unless it is paused. Returns the schedule, or null if
-- the job is not its next job.
-- The caller has locked the job: jobs are locked before schedules.
-- Called by: end_runs, find_late, start_runs.
-- MARK.next = 16
CREATE FUNCTION owe(_queue int, _id text, _job text) RETURNS schedules LANGUAGE plpgsql AS $body$
DECLARE
  _row schedules;
BEGIN
  UPDATE schedules
  SET version = version + 1, state = CASE WHEN state = 'running' THEN 'owing' ELSE state END, next_job = NULL
  WHERE queue = _queue AND id = _id AND next_job = _job RETURNING * INTO _row;
  UPDATE jobs SET marks = marks & ~16 WHERE queue = _queue AND id = _job;
  RETURN _row;
END
$body$;

-- name: dismiss
-- Takes the mark of a next job away, or removes the job. The caller has locked the job and changes the schedule.
-- Called by: forget_schedules, schedule.
-- States: 1 waiting, 2 delayed.
-- MARK.next = 16
CREATE FUNCTION dismiss(_queue int, _id text, _removed boolean, INOUT _change journal) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
BEGIN
  SELECT ctid AS at, state, priority INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  IF NOT FOUND THEN RETURN; END IF;
  IF NOT _removed THEN
    UPDATE jobs SET marks = marks & ~16 WHERE queue = _queue AND id = _id;
    RETURN;
  END IF;
  IF _job.state = 2 THEN
    _change.delayed := _change.delayed - 1;
  ELSIF _job.priority = 0 THEN
    _change.waiting := _change.waiting - 1;
  ELSE
    _change.prioritized := _change.prioritized - 1;
  END IF;
  _change.events := _change.events + 1;
  _change.body := concat_ws(
    ',', _change.body, event('removed', ARRAY[_id], json_build_object('prev', (ARRAY['waiting', 'delayed'])[greatest(_job.state, 1)]))
  );
  PERFORM drop_jobs(_queue, ARRAY[_job.at]);
END
$body$;

-- name: end_runs
-- Makes the schedules of next jobs that have ended owing. Only serial schedules have jobs that run and are still their next jobs.
-- Called by: leave.
CREATE FUNCTION end_runs(_queue int, _jobs text[], _extras text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM owe(_queue, schedule, job)
  FROM (
    SELECT job, extras::json ->> 's' AS schedule FROM unnest(_jobs, _extras) o(job, extras)
    WHERE extras::json ->> 's' IS NOT NULL ORDER BY extras::json ->> 's' COLLATE "C" OFFSET 0
  ) ended;
END
$body$;

-- name: find_late
-- Makes running schedules owing whose slot passed long ago and whose next job is gone, has finished or, unless serial, runs: then something
-- else than a claim of this version took the job. It waits for no lock.
-- Called by: upkeep.
-- States: 3 active, 4 completed, 5 failed.
-- LATE_MS = 60000
-- FOUND_AT_ONCE = 500
CREATE FUNCTION find_late(_now bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN
    SELECT s.* FROM schedules s
    LEFT JOIN LATERAL (SELECT state FROM jobs j WHERE j.queue = s.queue AND j.id = s.next_job AND true OFFSET 0) j ON true
    WHERE s.state = 'running' AND s.at < _now - 60000 AND (j.state IS NULL OR j.state + 0 IN (4, 5) OR j.state + 0 = 3 AND NOT s.serial)
    ORDER BY s.queue, s.at, s.id LIMIT 500
  LOOP
    PERFORM FROM jobs WHERE queue = _one.queue AND id = _one.next_job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND AND EXISTS (SELECT FROM jobs WHERE queue = _one.queue AND id = _one.next_job);
    PERFORM FROM schedules
    WHERE queue = _one.queue AND id = _one.id AND version = _one.version AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF FOUND THEN PERFORM owe(_one.queue, _one.id, _one.next_job); END IF;
  END LOOP;
END
$body$;

-- name: forget_schedules
-- Deletes the schedules of a queue, with next jobs that have not started. Each pass deletes those whose next jobs it has locked before.
-- Called by: forget.
-- States: 3 active.
CREATE FUNCTION forget_schedules(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _ids text[];
  _locked text[];
  _job record;
  _change journal := no_change(_queue);
BEGIN
  WHILE EXISTS (SELECT FROM schedules WHERE queue = _queue) LOOP
    _ids := ARRAY(SELECT next_job FROM schedules WHERE queue = _queue AND next_job IS NOT NULL);
    -- include: lock-jobs
    FOR _job IN
      WITH gone AS (
        DELETE FROM schedules WHERE queue = _queue AND (next_job IS NULL OR next_job = ANY (_ids)) RETURNING next_job AS id
      )
      SELECT gone.id, j.started FROM gone,
        LATERAL (SELECT state + 0 = 3 OR attempts_started > 0 AS started FROM jobs WHERE queue = _queue AND id = gone.id OFFSET 0) j
    LOOP
      _change := dismiss(_queue, _job.id, NOT _job.started, _change);
    END LOOP;
  END LOOP;
  IF _change.events > 0 THEN
    INSERT INTO journal (queue, waiting, prioritized, delayed)
    VALUES (_queue, _change.waiting, _change.prioritized, _change.delayed);
  END IF;
END
$body$;

-- name: start_runs
-- Makes the schedules of next jobs that were just claimed owing, except serial ones. Returns them, with the clock, in the place of a part
-- of a claim's reply that has no jobs: [null, [[job, schedule], …]]. Null: there are none.
-- Called by: claim_plain, grant_by_id, grant_in_turn, grant_locks, settle_children, settle_groups, settle_plain.
CREATE FUNCTION start_runs(_queue int, _jobs text[]) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _row schedules;
  _debts json[];
BEGIN
  FOR _one IN
    SELECT j.job, j.schedule FROM unnest(_jobs) o(id),
      LATERAL (SELECT id AS job, extras::json ->> 's' AS schedule FROM jobs WHERE queue = _queue AND id = o.id AND true OFFSET 0) j
    ORDER BY j.schedule COLLATE "C"
  LOOP
    CONTINUE WHEN EXISTS (SELECT FROM schedules WHERE queue = _queue AND id = _one.schedule AND serial);
    _row := owe(_queue, _one.schedule, _one.job);
    IF _row.id IS NOT NULL THEN
      _debts := _debts || json_build_array(_one.job, json_strip_nulls(schedule_record(_row)), floor(clock_ms())::bigint);
    END IF;
  END LOOP;
  RETURN '[null,' || to_json(_debts) || ']';
END
$body$;
