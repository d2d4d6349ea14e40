-- Records the step of the outcome `sleep`, a delay with a step: [name, value, name of the signal that the job awaits]. Returns why the outcome is
-- refused, as a letter (ready, full); null if it is not. With a stale token, it records nothing. The caller holds the lock of the job.
-- Called by: carry-out-each.sql.
-- States: 3 active.
CREATE FUNCTION record_sleep(_queue int, _job text, _owner text, _fence bigint, _said json) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM FROM jobs WHERE queue = _queue AND id = _job AND state + 0 = 3 AND session = _owner AND fence = _fence;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF (step_of(_queue, _job, _said ->> 2)).ord IS NOT NULL THEN RETURN 'r'; END IF;
  IF record_step(_queue, _job, _said ->> 0, _said ->> 1) IS NULL THEN RETURN 'f'; END IF;
  UPDATE jobs SET stalled_counter = 0 WHERE queue = _queue AND id = _job AND stalled_counter <> 0;
  RETURN NULL;
END
$body$;
