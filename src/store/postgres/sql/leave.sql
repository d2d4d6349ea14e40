-- Leaving a state, by whatever way: what else has to be done for the job, and where it goes.

-- name: leave
-- Does what remains to be done when jobs leave a state, by whatever way: their keys come free, the logs of removed jobs go, and marked jobs
-- release their entries and are missed by their schedules. The caller has moved or deleted the rows. Plain jobs that stay need none of it.
-- _marked, _extras: marked jobs that have ended or, _removed, were removed by a caller. _groups: the groups of jobs that left active,
-- _entered: of those that wait now.
-- Called by: carry_out, drop_jobs, fail_open, hand_back.
CREATE FUNCTION leave(
  _queue int, _clock float8, _keys text[], _logged text[], _marked text[], _extras text[], _removed boolean,
  INOUT _change journal, _groups text[] DEFAULT NULL, _entered text[] DEFAULT NULL
) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  IF _groups IS NOT NULL THEN PERFORM note_groups(_queue, _groups, _entered); END IF;
  IF _keys IS NOT NULL THEN
    -- include: free-keys
  END IF;
  IF _logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_logged); END IF;
  IF _marked IS NOT NULL THEN
    _change := release_entries(_queue, _clock, _marked, _extras, _removed, _change);
    IF NOT _removed THEN PERFORM end_runs(_queue, _marked, _extras); END IF;
  END IF;
END
$body$;

-- name: drop_jobs
-- Removes locked rows with everything that belongs to them. Returns how many. _removed: a caller removes them, so their entries go too; a
-- trim of finished jobs leaves these alone. Their parents get messages, and their own links go.
-- Called by: clear_lists, deduplicate, dismiss, hand_back, remove_jobs, retain,
--   send_ends, send_back.
-- States: 1 waiting.
-- MARK.child = 2
-- MARK.parent = 4
-- MARK.steps = 32
CREATE FUNCTION drop_jobs(_queue int, _rows tid[], _removed boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _gone record;
BEGIN
  WITH dropped AS (
    DELETE FROM jobs WHERE ctid = ANY (_rows)
    RETURNING id, log_next, CASE WHEN state + 0 BETWEEN -1 AND 1 THEN lock_key END AS lock_key, _removed AND marks > 0 AS marked, extras, marks,
      CASE WHEN marks & 2 > 0 THEN kin_of(id, extras, state, returnvalue, failed_reason) END AS kin
  )
  SELECT count(*) AS jobs, array_agg(id) FILTER (WHERE log_next > 0) AS logged,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE marked) AS marked,
    array_agg(extras) FILTER (WHERE marked) AS extras,
    json_agg(kin) FILTER (WHERE kin IS NOT NULL) AS kin, array_agg(id) FILTER (WHERE marks & 4 > 0) AS parents,
    array_agg(id) FILTER (WHERE marks & 32 > 0) AS stepped
  INTO _gone FROM dropped;
  PERFORM leave(_queue, NULL, _gone.keys, _gone.logged, _gone.marked, _gone.extras, true, NULL);
  IF _gone.kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _gone.kin, true); END IF;
  IF _gone.parents IS NOT NULL THEN
    DELETE FROM links WHERE queue = _queue AND parent = ANY (_gone.parents);
    DELETE FROM families WHERE queue = _queue AND parent = ANY (_gone.parents);
  END IF;
  IF _gone.stepped IS NOT NULL THEN DELETE FROM steps WHERE queue = _queue AND job = ANY (_gone.stepped); END IF;
  RETURN _gone.jobs;
END
$body$;

-- name: hand_back
-- Hands back jobs whose lock ends without an outcome of their owner: revoked (no stall), or lost (counts as a stall). The caller has locked
-- the jobs. They go to the front in the given order. _limits: how often each job may stall; null: does not count as a stall. _losses:
-- loss_of for each job. Cancelled jobs fail. _settled: a settle hands the jobs back.
-- Called by: carry_out, close_sessions, reap, revoke_jobs, sweep_ended.
-- States: 3 active, 5 failed.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
CREATE FUNCTION hand_back(
  _queue int, _clock float8, _ids text[], _limits float8[], _losses text[] DEFAULT NULL, _settled boolean DEFAULT false,
  OUT stalled text[], OUT failed text[], OUT stalled_by text[], OUT failed_by text[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT h.*, j.at, j.fence FROM unnest(_ids, _limits, _losses) WITH ORDINALITY h(id, most, loss, n),
      LATERAL (SELECT ctid AS at, fence FROM jobs j WHERE j.queue = _queue AND j.id = h.id AND state + 0 = 3 OFFSET 0) j
  ), moved AS (
    UPDATE jobs j
    SET
      -- The new values of a job `j` whose lock ends without an outcome; `h.most`: how often it may stall. A cancelled job fails.
      -- States: 5 failed.
      -- MARK.cancelled = 256
      -- STALLED_REASON = job stalled more than allowable limit
      state = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN 5 ELSE
          -- include: waiting-state
        END,
      lock_key = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN lock_key ELSE
          -- include: waiting-key
        END,
      ord = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN _base + h.n ELSE -(_base + cardinality(_ids) - h.n) END,
      stalled_counter = stalled_counter + CASE WHEN h.most IS NULL THEN 0 ELSE 1 END,
      lost_by = CASE WHEN h.most IS NULL THEN lost_by ELSE h.loss END,
      finished_on = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN floor(_clock) END,
      failed_reason = CASE WHEN marks & 256 > 0 THEN extras::json ->> 'c' WHEN stalled_counter >= h.most THEN 'job stalled more than allowable limit' ELSE failed_reason END,
      session = NULL, fence = NULL, claim_seq = NULL, ends_at = NULL, timed = false
    FROM held h WHERE j.ctid = h.at AND j.state + 0 = 3
    RETURNING h.n, h.loss, h.fence, j.id, j.state, j.priority, j.lock_key, j.state + 0 = 5 AND j.marks > 0 AS marked, j.extras,
      j.state + 0 = 5 AND j.marks & (2 | 64 | 128 | 256) > 0 AS kin, j.failed_reason,
      CASE WHEN j.marks & 1 > 0 THEN j.extras::json ->> 'g' END AS member
  )
  -- Sums up the rows of `moved` in _sum.
  -- States: 1 waiting, 5 failed.
  SELECT count(*) AS jobs, count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS plain, array_agg(id) AS ids,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND member IS NULL) AS keys,
    array_agg(member) FILTER (WHERE member IS NOT NULL) AS groups, array_agg(member) FILTER (WHERE state + 0 <= 1) AS entered,
    array_agg(id) FILTER (WHERE state + 0 <= 1) AS waiting,
    array_agg(id) FILTER (WHERE state = 5) AS failed, array_agg(failed_reason) FILTER (WHERE state = 5) AS reasons,
    array_agg(loss) AS losses,
    array_agg(loss) FILTER (WHERE state + 0 <= 1) AS waiting_losses, array_agg(loss) FILTER (WHERE state = 5) AS failed_losses,
    array_agg(id) FILTER (WHERE marked) AS marked, array_agg(extras) FILTER (WHERE marked) AS extras,
    array_agg(id) FILTER (WHERE kin) AS kin, array_agg(fence) FILTER (WHERE kin) AS fences
  INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  stalled := _sum.waiting;
  failed := _sum.failed;
  _change.active := -_sum.jobs;
  _change.events := _sum.jobs;
  IF _limits IS NOT NULL THEN
    _change.events := 2 * _sum.jobs;
    stalled_by := _sum.waiting_losses;
    failed_by := _sum.failed_losses;
    _change.body := event('stalled', _sum.ids, json_build_object('lostBy', losses_field(_sum.losses)));
  END IF;
  IF _sum.waiting IS NOT NULL THEN
    _change.waiting := _sum.plain;
    _change.prioritized := cardinality(_sum.waiting) - _sum.plain;
    _change.body := concat_ws(',', _change.body, event('waiting', _sum.waiting, '{"prev":"active"}'));
  END IF;
  IF _sum.failed IS NOT NULL THEN
    _change.failed := cardinality(_sum.failed);
    IF _settled THEN _change.finishes := cardinality(_sum.failed); END IF;
    _change.body := concat_ws(
      ',', _change.body,
      event(
        'failed', _sum.failed,
        json_build_object('failedReason', losses_field(_sum.reasons), 'lostBy', losses_field(_sum.failed_losses))
      )
    );
    IF _sum.kin IS NOT NULL THEN PERFORM send_ends(_queue, _sum.kin, NULL, _sum.fences); END IF;
    -- include: keep-failed
  END IF;
  _change := leave(_queue, _clock, _sum.keys, NULL, _sum.marked, _sum.extras, false, _change, _sum.groups, _sum.entered);
  -- include: note
END
$body$;

-- name: fail_open
-- Fails those of the jobs that are neither active nor finished, in their order. They send no letters. The caller has locked the jobs.
-- Called by: cancel_open.
-- States: 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.doomed = 64
CREATE FUNCTION fail_open(_queue int, _clock float8, _ids text[], _reason text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT o.n, j.* FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (
        SELECT ctid AS at, greatest(state, 1) AS before, CASE WHEN state + 0 BETWEEN -1 AND 1 THEN lock_key END AS key FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND state + 0 NOT IN (3, 4, 5) OFFSET 0
      ) j
  ), moved AS (
    UPDATE jobs j
    SET state = 5, ord = _base + h.n, delay = 0, due_at = NULL, finished_on = floor(_clock), failed_reason = _reason,
      lock_key = CASE WHEN marks & 1 > 0 THEN NULL ELSE lock_key END, marks = marks & ~64,
      extras = CASE WHEN marks & 64 > 0 THEN NULLIF((extras::jsonb - 'x')::text, '{}') ELSE extras END
    FROM held h WHERE j.ctid = h.at
    RETURNING h.n, h.before, h.key, j.id, j.priority, j.marks, j.extras,
      CASE WHEN j.marks & 2 > 0 THEN kin_of(j.id, j.extras, j.state, NULL, j.failed_reason) END AS kin
  )
  SELECT array_agg(id) AS failed, array_agg((ARRAY['waiting', 'delayed', NULL, NULL, NULL, 'waiting-children'])[before]) AS states,
    count(*) FILTER (WHERE before = 1 AND priority = 0) AS waiting, count(*) FILTER (WHERE before = 1 AND priority > 0) AS prioritized,
    count(*) FILTER (WHERE before = 2) AS delayed, nullif(count(*) FILTER (WHERE before = 6), 0) AS parents,
    array_agg(key) FILTER (WHERE key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE marks > 0) AS marked,
    array_agg(extras) FILTER (WHERE marks > 0) AS extras, json_agg(kin) FILTER (WHERE kin IS NOT NULL) AS kin
  INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.failed IS NULL THEN RETURN; END IF;
  _change.waiting := -_sum.waiting;
  _change.prioritized := -_sum.prioritized;
  _change.delayed := -_sum.delayed;
  _change.parents := -_sum.parents;
  _change.failed := cardinality(_sum.failed);
  _change.events := cardinality(_sum.failed);
  _change.body := event('failed', _sum.failed, json_build_object('failedReason', _reason, 'prev', _sum.states));
  IF _sum.kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _sum.kin, false); END IF;
  -- include: keep-failed
  _change := leave(_queue, _clock, _sum.keys, NULL, _sum.marked, _sum.extras, false, _change);
  -- include: note
END
$body$;

-- name: send_to_waiting
-- Moves locked rows of one state to waiting, in their order. Returns their ids, null if there are none. A finished job becomes a job that
-- has not run: its attempts, stack trace
-- and logs stay. A delayed job keeps the reason of its last failure.
-- Called by: change_jobs, requeue_listed, write_step.
-- States: 2 delayed, 4 completed.
-- MARK.key = 1
-- MARK.child = 2
CREATE FUNCTION send_to_waiting(
  _queue int, _state smallint, _rows tid[], _reset_made boolean, _reset_started boolean
) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
BEGIN
  WITH moved AS (
    UPDATE jobs j
    SET state =
      -- include: waiting-state
      , lock_key =
      -- include: waiting-key
      , ord = _base + r.n, delay = 0, due_at = NULL, session = NULL,
      fence = NULL, finished_on = NULL, returnvalue = NULL, processed_on = CASE WHEN _state >= 4 THEN NULL ELSE processed_on END,
      failed_reason = CASE WHEN _state >= 4 THEN NULL ELSE failed_reason END,
      attempts_made = CASE WHEN _reset_made THEN 0 ELSE attempts_made END,
      attempts_started = CASE WHEN _reset_started THEN 0 ELSE attempts_started END
    FROM unnest(_rows) WITH ORDINALITY r(at, n)
    WHERE j.ctid = r.at RETURNING r.n, j.id, j.priority, _state >= 4 AND j.marks > 0 AS marked, j.extras,
      CASE WHEN _state >= 4 AND j.marks & 2 > 0 THEN kin_of(j.id, j.extras, j.state, NULL, NULL) END AS kin,
      CASE WHEN j.marks & 1 > 0 THEN j.lock_key END AS member
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain, array_agg(id) AS ids,
    array_agg(id) FILTER (WHERE marked) AS marked, array_agg(extras) FILTER (WHERE marked) AS extras,
    array_agg(member) FILTER (WHERE member IS NOT NULL) AS entered,
    json_agg(kin) FILTER (WHERE kin IS NOT NULL) AS kin
  INTO _sum
  FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.jobs > 0 THEN
    _change.waiting := _sum.plain;
    _change.prioritized := _sum.jobs - _sum.plain;
    CASE _state
      WHEN 2 THEN _change.delayed := -_sum.jobs;
      WHEN 4 THEN _change.completed := -_sum.jobs;
      ELSE _change.failed := -_sum.jobs;
    END CASE;
    _change.events := _sum.jobs;
    _change.body := event(
      'waiting', _sum.ids,
      json_build_object('prev', (ARRAY['waiting', 'delayed', 'active', 'completed', 'failed'])[greatest(_state, 1)])
    );
    -- include: note
    IF _sum.entered IS NOT NULL THEN PERFORM note_groups(_queue, NULL, _sum.entered::text[]); END IF;
    IF _sum.marked IS NOT NULL THEN PERFORM own_again(_queue, _sum.marked, _sum.extras); END IF;
    IF _sum.kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _sum.kin, false); END IF;
  END IF;
  RETURN _sum.ids;
END
$body$;

-- part: keep-failed
-- Counts the jobs of _sum.failed, removes those that are not to be kept, and trims those that failed before.
-- States: 5 failed.
SELECT floor(_clock / 60000), 0, cardinality(_sum.failed) INTO _change.minute, _change.completions, _change.failures FROM queues
WHERE queue = _queue AND metric_points IS NOT NULL;
FOR _job IN
  SELECT j.* FROM unnest(_sum.failed) o(id),
    LATERAL (SELECT opts, ord, ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  ORDER BY ord
LOOP
  _keep := keep_on_fail(_job.opts);
  IF _keep.most = 0 THEN
    _change.failed := _change.failed - drop_jobs(_queue, ARRAY[_job.at]);
  ELSIF _keep.most IS NOT NULL OR _keep.age IS NOT NULL THEN
    _change.failed := _change.failed - retain(_queue, 5::smallint, _change.failed, _keep.most, _clock - _keep.age);
  END IF;
END LOOP;

-- part: waiting-key
-- The lock_key of a job that waits from now on: that of its group, if it has one.
-- MARK.key = 1
CASE WHEN marks & 1 > 0 THEN extras::json ->> 'g' ELSE lock_key END

-- part: waiting-state
-- The state of a job that waits from now on.
-- States: -2 grouped, 0 keyed, 1 waiting.
-- MARK.key = 1
CASE WHEN marks & 1 > 0 THEN -2 WHEN lock_key IS NULL THEN 1 ELSE 0 END

-- part: free-keys
-- Records that the keys _keys may have come free.
INSERT INTO freed_keys (queue, lock_key)
SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(_keys) key WHERE key IS NOT NULL) freed;
