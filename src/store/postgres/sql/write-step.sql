-- Records a step of the owner (_owned) or a signal. Returns the reply of write-jobs.sql. The caller holds the lock of the job.
-- Called by: write-jobs.sql.
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
