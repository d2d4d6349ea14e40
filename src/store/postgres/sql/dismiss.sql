-- Takes the mark of a next job away, or removes the job. The caller has locked the job and changes the schedule.
-- Called by: forget-schedules.sql, schedule.sql.
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
