-- Retention: removing finished jobs above the limits.

-- name: retain
-- Removes finished jobs above the retention limits. Each call trims the oldest jobs, at most a bounded number; the next call trims the
-- rest. Trimming skips locked rows, because it runs after the call has locked its own jobs.
-- Trims the jobs that finished just now (_fresh of them, not in the counts yet) and those that finished before. Returns how many were
-- removed.
-- Called by: book, fail_open, hand_back.
-- States: 4 completed.
-- TRIMMED_AT_ONCE = 1000
CREATE FUNCTION retain(
  _queue int, _state smallint, _fresh bigint, _most float8, _latest float8
) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _head bigint;
  _have bigint;
  _gone tid[];
  _went bigint := 0;
BEGIN
  SELECT CASE WHEN _state = 4 THEN head_completed ELSE head_failed END,
    CASE WHEN _most IS NOT NULL THEN _fresh + CASE WHEN _state = 4 THEN completed ELSE failed END + coalesce((
      SELECT sum(CASE WHEN _state = 4 THEN completed ELSE failed END) FROM journal
      WHERE journal.queue = q.queue AND journal.number >= q.journal_from
    ), 0) END
  INTO _head, _have FROM queues q WHERE queue = _queue;
  IF _have > _most THEN
    _gone := ARRAY(
      SELECT ctid FROM jobs
      WHERE queue = _queue AND state >= 4 AND state = _state AND ord >= _head AND (xmax = 0 OR untouched(xmax))
      ORDER BY ord LIMIT least(_have - _most, 1000) FOR UPDATE SKIP LOCKED
    );
    _went := drop_jobs(_queue, _gone);
  END IF;
  -- Looks at one row as long as none is old enough.
  IF _latest IS NOT NULL AND (
    SELECT finished_on FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state AND ord >= _head ORDER BY ord LIMIT 1
  ) <= _latest THEN
    _gone := ARRAY(
      SELECT ctid FROM (
        SELECT ctid, finished_on FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state AND ord >= _head
        ORDER BY ord LIMIT 1000
      ) j
      WHERE finished_on <= _latest
    );
    _went := _went + drop_jobs(
      _queue,
      ARRAY(
        SELECT ctid FROM jobs WHERE ctid = ANY (_gone) AND state = _state AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
      )
    );
  END IF;
  RETURN _went;
END
$body$;

-- name: keep_on_fail
-- Reads removeOnFail from the job's own options, for a failure that no worker reports. Options that cannot be parsed remove nothing.
-- Called by: fail_open, hand_back.
CREATE FUNCTION keep_on_fail(_opts text, OUT most float8, OUT age float8) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _rule json;
BEGIN
  _rule := _opts::json -> 'removeOnFail';
  IF json_typeof(_rule) = 'boolean' THEN
    most := CASE WHEN _rule::text = 'true' THEN 0 END;
  ELSIF json_typeof(_rule) = 'number' THEN
    most := _rule::text;
  ELSIF json_typeof(_rule) = 'object' THEN
    IF json_typeof(_rule -> 'count') = 'number' THEN most := _rule ->> 'count'; END IF;
    IF json_typeof(_rule -> 'age') = 'number' THEN age := (_rule ->> 'age')::float8 * 1000; END IF;
  END IF;
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN;
END
$body$;
