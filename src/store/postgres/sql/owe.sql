-- Lets the next job of a schedule be an ordinary job. The schedule then owes a job, unless it is paused. Returns the schedule, or null if
-- the job is not its next job.
-- The caller has locked the job: jobs are locked before schedules.
-- Called by: end-runs.sql, find-late.sql, start-runs.sql.
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
