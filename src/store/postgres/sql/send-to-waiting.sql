-- Moves locked rows of one state to waiting, in their order. Returns their ids, null if there are none. A finished job becomes a job that
-- has not run: its attempts, stack trace
-- and logs stay. A delayed job keeps the reason of its last failure.
-- Called by: change-jobs.sql, requeue-listed.sql, write-step.sql.
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
