-- The clock is read in the statement that reads the rows: never before the suspicion was visible to all processes.
-- Called by: probe.sql.
CREATE FUNCTION shorten_suspected(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE sessions
  SET spared_until = expires_at, expires_at = least(expires_at, ceil(clock + grace_ms)),
    look_at = least(look_at, ceil(clock + grace_ms))
  FROM (SELECT clock_ms() AS clock OFFSET 0) read
  WHERE sessions.ctid = ANY (
    ARRAY(
      SELECT ctid FROM sessions
      WHERE queue = _queue AND reaped = 0 AND suspected AND spared_until IS NULL FOR NO KEY UPDATE SKIP LOCKED
    )
  );
END
$body$;
