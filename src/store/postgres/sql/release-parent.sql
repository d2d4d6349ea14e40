-- Moves a parent that waits for children on: to the front of waiting, or to delayed for the delay that it was added with. _child: a child that
-- failed and so dooms the parent, as JSON. A doomed parent waits at once, also if it was delayed; a parent that is active or has finished
-- keeps its state and is not doomed. The caller holds the lock of the job.
-- Called by: deliver.sql, put-family.sql, unlink-jobs.sql.
-- States: 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.doomed = 64
CREATE FUNCTION release_parent(_queue int, _id text, _child jsonb DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _base bigint;
  _change journal := no_change(_queue);
  _from smallint;
  _later boolean;
  _job record;
BEGIN
  SELECT state, delay INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  _from := _job.state;
  IF _child IS NULL AND _from IS DISTINCT FROM 6 OR _from IN (3, 4, 5) THEN RETURN; END IF;
  IF _child IS NOT NULL THEN
    UPDATE jobs SET marks = marks | 64, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object('x', _child)
    WHERE queue = _queue AND id = _id;
    IF _from <= 1 THEN RETURN; END IF;
  END IF;
  _later := _child IS NULL AND _job.delay > 0;
  _base := nextval('places') + 1;
  UPDATE jobs
  SET state = CASE WHEN _later THEN 2 ELSE
      -- include: waiting-state
    END,
    lock_key = CASE WHEN _later THEN lock_key ELSE
      -- include: waiting-key
    END,
    ord = CASE WHEN _later THEN _base ELSE -_base END, delay = CASE WHEN _later THEN delay ELSE 0 END,
    due_at = CASE WHEN _later THEN ceil(_clock + delay) END
  WHERE queue = _queue AND id = _id
  RETURNING priority, due_at, CASE WHEN marks & 1 > 0 THEN lock_key END AS member INTO _job;
  IF _from = 6 THEN _change.parents := -1; ELSE _change.delayed := -1; END IF;
  _change.events := 1;
  IF _later THEN
    _change.delayed := _change.delayed + 1;
    _change.body := event('delayed', ARRAY[_id], json_build_object('delay', _job.due_at));
  ELSE
    IF _job.priority = 0 THEN _change.waiting := 1; ELSE _change.prioritized := 1; END IF;
    _change.body := event('waiting', ARRAY[_id], json_build_object('prev', CASE _from WHEN 6 THEN 'waiting-children' ELSE 'delayed' END));
    IF _job.member IS NOT NULL THEN PERFORM note_groups(_queue, NULL, ARRAY[_job.member::text]); END IF;
  END IF;
  -- include: note
END
$body$;
