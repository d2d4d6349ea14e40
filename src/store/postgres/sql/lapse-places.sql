-- Deletes the places of a line that are no longer kept.
-- Called by: acquire-in-line.sql.
CREATE FUNCTION lapse_places(_queue int, _now bigint, _name text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places WHERE queue = _queue AND name = _name AND kept_until <= _now ORDER BY place FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;
