-- Deletes up to _limit locks and places of a session that the caller has locked. Skips rows that another transaction holds. Returns how
-- many.
-- Called by: close-sessions.sql, reap.sql.
CREATE FUNCTION free_names(_queue int, _session text, _limit int) RETURNS int LANGUAGE plpgsql AS $body$
DECLARE
  _freed int;
  _left int;
BEGIN
  DELETE FROM named
  WHERE ctid = ANY (
    ARRAY(SELECT ctid FROM named WHERE queue = _queue AND session = _session ORDER BY name LIMIT _limit FOR UPDATE SKIP LOCKED)
  );
  GET DIAGNOSTICS _freed = ROW_COUNT;
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places WHERE queue = _queue AND session = _session
      ORDER BY place LIMIT _limit - _freed FOR UPDATE SKIP LOCKED
    )
  );
  GET DIAGNOSTICS _left = ROW_COUNT;
  RETURN _freed + _left;
END
$body$;
