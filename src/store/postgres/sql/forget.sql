-- Keeps the counters of events and places: listeners read on from their event id, and jobs that still exist keep their order.
-- Called by: control.ts.
CREATE FUNCTION forget(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM fold(_queue);
    PERFORM trim_log(_queue, 0);
    UPDATE queues SET paused = false, limited_until = 0, window_ends = 0, max_active = NULL WHERE queue = _queue;
    PERFORM setval(('ids_' || _queue)::regclass, 1, false);
  END IF;
  RETURN 'null';
END
$body$;
