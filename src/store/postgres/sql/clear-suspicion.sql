-- Clears the suspicion of a session that is granted a lock: its owner lives. Otherwise the owner would trust a lock that ends before
-- its time. Returns whether the session is alive.
-- Called by: lock-sessions.sql, claim.sql, settle.sql.
CREATE FUNCTION clear_suspicion(_queue int, _session text, _now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE sessions SET suspected = false, expires_at = greatest(expires_at, spared_until), spared_until = NULL
  WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now;
  RETURN FOUND;
END
$body$;
