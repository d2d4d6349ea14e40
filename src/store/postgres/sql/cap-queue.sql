-- Sets or removes the cap of a queue.
-- Called by: control.ts.
CREATE FUNCTION cap_queue(_name text, _most float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  -- Not in the statement, which would not see a row that it makes.
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues SET max_active = _most WHERE queue = _queue;
  RETURN 'null';
END
$body$;
