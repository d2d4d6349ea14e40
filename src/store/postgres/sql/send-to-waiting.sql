-- Moves locked rows of one state to waiting, in their order. Returns their ids, null if there are none. A finished job becomes a job that
-- has not run: its attempts, stack trace
-- and logs stay. A delayed job keeps the reason of its last failure.
-- Called by: change-jobs.sql, requeue-listed.sql.
-- States: 0 keyed, 1 waiting, 2 delayed, 4 completed.
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
    SET state = CASE WHEN lock_key IS NULL THEN 1 ELSE 0 END, ord = _base + r.n, delay = 0, due_at = NULL, session = NULL,
      fence = NULL, finished_on = NULL, returnvalue = NULL, processed_on = CASE WHEN _state >= 4 THEN NULL ELSE processed_on END,
      failed_reason = CASE WHEN _state >= 4 THEN NULL ELSE failed_reason END,
      attempts_made = CASE WHEN _reset_made THEN 0 ELSE attempts_made END,
      attempts_started = CASE WHEN _reset_started THEN 0 ELSE attempts_started END
    FROM unnest(_rows) WITH ORDINALITY r(at, n) WHERE j.ctid = r.at RETURNING r.n, j.id, j.priority
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain, array_agg(id) AS ids INTO _sum
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
  END IF;
  RETURN _sum.ids;
END
$body$;
