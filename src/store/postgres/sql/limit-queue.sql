-- Blocks the claims of a queue for a while, or ends that.
-- Called by: control.ts.
CREATE FUNCTION limit_queue(_name text, _duration float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues
  SET limited_until = CASE WHEN _duration > 0 THEN ceil(clock_ms() + _duration) ELSE 0 END,
    window_ends = CASE WHEN _duration > 0 THEN window_ends ELSE 0 END
  WHERE queue = _queue;
  RETURN 'null';
END
$body$;
