-- Deletes a session that holds nothing more.
-- Called by: reap.sql.
CREATE FUNCTION forget_session(_queue int, _session text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM sessions WHERE queue = _queue AND id = _session;
  DELETE FROM revocations WHERE queue = _queue AND session = _session;
END
$body$;
