-- Records a step of a job unless its name is recorded. Returns the recorded value; null if there is no room. The caller holds the lock of the
-- job.
-- Called by: record-sleep.sql, write-step.sql.
-- MAX_STEPS = 1000
-- MAX_STEP_BYTES = 1048576
-- MARK.steps = 32
CREATE FUNCTION record_step(_queue int, _job text, _name text, _value text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _step steps := step_of(_queue, _job, _name);
  _bytes bigint;
BEGIN
  IF _step.ord IS NOT NULL THEN RETURN _step.value; END IF;
  SELECT * INTO _step FROM steps WHERE queue = _queue AND job = _job ORDER BY ord DESC LIMIT 1;
  _bytes := coalesce(_step.upto, 0)::bigint + octet_length(_name) + octet_length(_value);
  IF _step.ord >= 1000 OR _bytes > 1048576 THEN RETURN NULL; END IF;
  INSERT INTO steps (queue, job, ord, upto, name, value)
  VALUES (_queue, _job, coalesce(_step.ord, 0) + 1, _bytes, _name, _value);
  UPDATE jobs SET marks = marks | 32, extras = coalesce(extras::jsonb, '{}') || '{"t":true}'
  WHERE queue = _queue AND id = _job AND marks & 32 = 0;
  RETURN _value;
END
$body$;
