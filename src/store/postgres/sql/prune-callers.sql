-- Deletes callers that were not used for long, and moves the others on. Returns whether there may be more of them. A worker may repeat
-- its last call for as long as its session is open.
-- Called by: upkeep.sql.
-- PRUNED_AT_ONCE = 500: how many callers one call checks for their age.
-- REMEMBERED_MS = 600000: A producer may repeat a call for ten minutes.
CREATE FUNCTION prune_callers(_now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _due tid[] := ARRAY(SELECT ctid FROM callers WHERE look_at <= _now ORDER BY look_at LIMIT 500 FOR UPDATE SKIP LOCKED);
BEGIN
  DELETE FROM callers c
  WHERE c.ctid = ANY (_due) AND c.used_at < _now - 600000
    AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = c.queue AND s.id = c.id);
  UPDATE callers SET look_at = greatest(used_at + 600000 + 1, _now + 1) WHERE ctid = ANY (_due) AND used_at >= _now - 600000;
  UPDATE callers SET look_at = _now + 600000 WHERE ctid = ANY (_due) AND look_at <= _now;
  RETURN cardinality(_due) = 500;
END
$body$;
