-- Deletes a step of a job and all later ones. Returns false if the job has no such step. The caller holds the lock of the job.
-- Called by: change-jobs.sql.
CREATE FUNCTION drop_steps(_queue int, _job text, _name text) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _first steps := step_of(_queue, _job, _name);
BEGIN
  DELETE FROM steps WHERE queue = _queue AND job = _job AND ord >= _first.ord;
  RETURN FOUND;
END
$body$;
