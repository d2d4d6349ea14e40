-- Locks the sessions of some requests for named locks, so that nothing closes or reaps them meanwhile, and the expired sessions that hold
-- these locks, which may have to be ended. Returns the ids of the latter. Rows of sessions are locked before any name is.
-- Called by: acquire.sql.
CREATE FUNCTION lock_sessions(_queue int, _now bigint, _names text[], _sessions text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _ended text[] := '{}';
  _suspected boolean;
  _one record;
BEGIN
  FOR _one IN
    SELECT id, bool_or(expired) AS expired FROM (
      SELECT session AS id, false AS expired FROM unnest(_sessions) session
      UNION ALL
      SELECT n.session, true FROM unnest(_names) o(name)
      JOIN LATERAL (SELECT session FROM named WHERE queue = _queue AND named.name = o.name OFFSET 0) n ON true
      JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
      WHERE NOT (s.reaped + 0 = 0 AND s.expires_at > _now)
    ) both_kinds
    GROUP BY id ORDER BY id
  LOOP
    IF _one.expired THEN
      PERFORM FROM sessions WHERE queue = _queue AND id = _one.id FOR UPDATE;
      _ended := _ended || _one.id;
    ELSE
      SELECT suspected INTO _suspected FROM sessions WHERE queue = _queue AND id = _one.id FOR KEY SHARE;
      IF _suspected THEN PERFORM clear_suspicion(_queue, _one.id, _now); END IF;
    END IF;
  END LOOP;
  RETURN _ended;
END
$body$;
