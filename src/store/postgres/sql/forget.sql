-- Keeps the counters of events and places: listeners read on from their event id, and jobs that still exist keep their order.
-- Called by: control.ts.
CREATE FUNCTION forget(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
BEGIN
  PERFORM lock_groups(queue, NULL, true) FROM queues WHERE name = _name AND grouped;
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM forget_schedules(_queue);
    PERFORM keep_metrics(_queue, NULL);
    PERFORM trim_log(_queue, 0);
    UPDATE queues
    SET paused = false, limited_until = 0, window_ends = 0, max_active = NULL, rate_max = NULL, rate_ms = NULL, metric_points = NULL
    WHERE queue = _queue;
    PERFORM forget_groups(_queue);
    DELETE FROM dedup WHERE queue = _queue;
    PERFORM setval(('ids_' || _queue)::regclass, 1, false);
  END IF;
  RETURN 'null';
END
$body$;
