-- Finds dead sessions and expired locks, and hands their jobs back.
-- Upkeep runs only in a call that found nothing dead, because it takes longer.
-- Called by: sweep.ts.
CREATE FUNCTION sweep(_name text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _look record;
  _nothing text := swept('{}', '{}', 0, false);
  _reply text := _nothing;
BEGIN
  -- include: look
  INTO _look FROM queues q WHERE name = _name;
  IF _look.ended OR _look.looked IS NOT NULL THEN
    _reply := reap(_look.queue, _clock, _limit, _look.ended, _look.looked > _now);
  END IF;
  IF _look.upkeep AND _reply = _nothing THEN PERFORM upkeep(_look.queue, _now); END IF;
  RETURN _reply;
END
$body$;
