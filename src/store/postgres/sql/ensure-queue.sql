-- Creates a queue, if there is none of this name.
-- Called by: operations.ts.
CREATE FUNCTION ensure_queue(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM queue_of(_name);
  RETURN 'null';
END
$body$;
