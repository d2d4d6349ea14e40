-- Returns whether a job may end now: neither its entry, if it owns one, nor its schedule, if it is the next job, is held by another
-- transaction. Sweeps never wait.
-- Called by: reap.sql, sweep-ended.sql.
CREATE FUNCTION entry_free(_queue int, _job text, _extras text) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _id text := _extras::json ->> 'd';
  _schedule text := _extras::json ->> 's';
BEGIN
  IF _schedule IS NOT NULL THEN
    PERFORM FROM schedules
    WHERE queue = _queue AND id = _schedule AND next_job = _job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM schedules WHERE queue = _queue AND id = _schedule AND next_job = _job) THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM FROM dedup
  WHERE queue = _queue AND id = _id AND job = _job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
  RETURN FOUND OR NOT EXISTS (SELECT FROM dedup WHERE queue = _queue AND id = _id AND job = _job);
END
$body$;
