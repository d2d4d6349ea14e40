-- Returns the step of this name that a job has recorded. Without one, its fields are null.
-- Called by: drop-steps.sql, record-sleep.sql, record-step.sql.
CREATE FUNCTION step_of(_queue int, _job text, _name text) RETURNS steps LANGUAGE plpgsql STABLE AS $body$
DECLARE
  _step steps;
BEGIN
  SELECT * INTO _step FROM steps
  WHERE queue = _queue AND job = _job AND hashtextextended(name, 0) = hashtextextended(_name, 0) AND name = _name;
  RETURN _step;
END
$body$;
