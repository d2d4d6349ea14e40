-- Creates queues that send or get messages, if they are none yet. _others: queues that need not exist. A user's transaction must not do
-- it: it would hold the rows of the queues until its end.
-- Called by: add-family.ts.
CREATE FUNCTION ensure_families(_names text[], _others text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM relate(ARRAY(SELECT queue_of(name) FROM (SELECT DISTINCT name FROM unnest(_names) name ORDER BY name OFFSET 0) n), _others);
  RETURN 'null';
END
$body$;
