-- A process that lives but lost its advisory lock clears the suspicion of its sessions. It names the new lock when it holds one again.
-- Called by: probe.ts.
CREATE FUNCTION attest(_presence int, _vouched int, _turn int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM FROM sessions WHERE presence = _presence ORDER BY queue, id FOR NO KEY UPDATE;
  UPDATE sessions
  SET vouched = _vouched, attested = _turn, suspected = false, expires_at = greatest(expires_at, spared_until),
    spared_until = NULL
  WHERE presence = _presence AND reaped = 0 AND attested < _turn;
  RETURN 'null';
END
$body$;
