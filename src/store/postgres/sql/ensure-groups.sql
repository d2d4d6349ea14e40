-- Creates a queue with groups, if it is none yet. A user's transaction must not do it: it would hold the row of the queue until its end.
-- Called by: operations.ts.
CREATE FUNCTION ensure_groups(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM be_grouped(queue_of(_name));
  RETURN 'null';
END
$body$;
