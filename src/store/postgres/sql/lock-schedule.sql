-- Locks a schedule. _made: if there is none, it makes one with version 0, so that two calls that make it run one after the other.
-- Called by: lock-schedules.sql, schedule.sql.
CREATE FUNCTION lock_schedule(_queue int, _id text, _made boolean) RETURNS schedules LANGUAGE plpgsql AS $body$
DECLARE
  _row schedules;
BEGIN
  LOOP
    SELECT * INTO _row FROM schedules WHERE queue = _queue AND id = _id FOR UPDATE;
    IF FOUND OR NOT _made THEN RETURN _row; END IF;
    INSERT INTO schedules (queue, id) VALUES (_queue, _id) ON CONFLICT DO NOTHING;
  END LOOP;
END
$body$;
