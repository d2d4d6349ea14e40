-- Trims the log of events to a number of events. Returns how many it removed.
-- Called by: control.ts.
CREATE FUNCTION trim_events(_name text, _keep float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  PERFORM fold(_queue);
  RETURN trim_log(_queue, _keep);
END
$body$;
