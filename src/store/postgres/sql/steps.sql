-- Steps of jobs.

-- name: drop_steps
-- Deletes a step of a job and all later ones. Returns false if the job has no such step. The caller holds the lock of the job.
-- Called by: change_jobs.
CREATE FUNCTION drop_steps(_queue int, _job text, _name text) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _first steps := step_of(_queue, _job, _name);
BEGIN
  DELETE FROM steps WHERE queue = _queue AND job = _job AND ord >= _first.ord;
  RETURN FOUND;
END
$body$;

-- name: record_sleep
-- Records the step of the outcome `sleep`, a delay with a step: [name, value, name of the signal that the job awaits]. Returns why the
-- outcome is refused, as a letter (ready, full); null if it is not. With a stale token, it records nothing. The caller holds the lock of
-- the job.
-- Called by: carry_out_each.
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

-- name: record_step
-- Records a step of a job unless its name is recorded. Returns the recorded value; null if there is no room. The caller holds the lock of
-- the job.
-- Called by: record_sleep, write_step.
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

-- name: step_of
-- Returns the step of this name that a job has recorded. Without one, its fields are null.
-- Called by: drop_steps, record_sleep, record_step.
CREATE FUNCTION step_of(_queue int, _job text, _name text) RETURNS steps LANGUAGE plpgsql STABLE AS $body$
DECLARE
  _step steps;
BEGIN
  SELECT * INTO _step FROM steps
  WHERE queue = _queue AND job = _job AND hashtextextended(name, 0) = hashtextextended(_name, 0) AND name = _name;
  RETURN _step;
END
$body$;

-- name: steps_of
-- Returns the steps of a job in their order: a name and a value each.
-- Called by: inspect.ts.
CREATE FUNCTION steps_of(_name text, _job text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN coalesce(
    (
      SELECT json_agg(json_build_array(name, value))
      FROM (
        SELECT name, value FROM steps WHERE queue = (SELECT queue FROM queues WHERE queues.name = _name) AND job = _job ORDER BY ord
      ) s
    ), '[]'
  );
END
$body$;

-- name: write_step
-- Records a step of the owner (_owned) or a signal. Returns the reply of write_jobs. The caller holds the lock of the job.
-- Called by: write_jobs.
-- States: 2 delayed, 4 completed, 5 failed.
CREATE FUNCTION write_step(_queue int, _id text, _owned boolean, _name text, _value text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _recorded text;
  _awaited tid;
BEGIN
  IF NOT _owned AND EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _id AND state + 0 IN (4, 5)) THEN RETURN '["ended"]'; END IF;
  _recorded := record_step(_queue, _id, _name, _value);
  IF _recorded IS NULL THEN RETURN '["full"]'; END IF;
  IF _owned THEN
    UPDATE jobs SET stalled_counter = 0 WHERE queue = _queue AND id = _id AND stalled_counter <> 0;
  ELSE
    _awaited := (SELECT ctid FROM jobs WHERE queue = _queue AND id = _id AND state + 0 = 2 AND extras::json ->> 'w' = _name);
    IF _awaited IS NOT NULL THEN PERFORM send_to_waiting(_queue, 2::smallint, ARRAY[_awaited], false, false); END IF;
  END IF;
  RETURN json_build_array('done', NULL, _recorded);
END
$body$;
