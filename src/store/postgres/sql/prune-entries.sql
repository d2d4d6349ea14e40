-- Deletes entries whose end has passed. Returns whether there may be more of them.
-- Called by: upkeep.sql.
-- PRUNED_AT_ONCE = 500
CREATE FUNCTION prune_entries(_now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _ended tid[] := ARRAY(SELECT ctid FROM dedup WHERE until <= _now ORDER BY until LIMIT 500 FOR UPDATE SKIP LOCKED);
BEGIN
  DELETE FROM dedup WHERE ctid = ANY (_ended);
  RETURN cardinality(_ended) = 500;
END
$body$;
