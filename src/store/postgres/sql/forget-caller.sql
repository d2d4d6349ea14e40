-- Forgets a caller.
-- Called by: control.ts.
CREATE FUNCTION forget_caller(_name text, _id text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  DELETE FROM callers
  WHERE ctid = ANY (
    ARRAY(
      SELECT c.ctid FROM callers c
      WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _id FOR UPDATE OF c SKIP LOCKED
    )
  );
  RETURN 'null';
END
$body$;
