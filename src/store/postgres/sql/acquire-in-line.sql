-- Decides about one request for a named lock, under the lock of the name. _ended: sessions that the caller has locked because they had
-- expired. _mark: see waiters-before.sql; null in the first request of the call for this name. It comes back with the place of this request.
-- Called by: acquire.sql.
-- SPARE = 1.125: each place is kept longer than requested by this factor, so that waiters that are woken in vain have nothing to write.
CREATE FUNCTION acquire_in_line(
  _queue int, _now bigint, _name text, _token text, _session text, _keep float8, _ended text[], INOUT _mark bigint[], OUT _reply text
) LANGUAGE plpgsql AS $body$
DECLARE
  _hold record;
  _place bigint;
  _ahead bigint;
BEGIN
  PERFORM FROM sessions s WHERE queue = _queue AND id = _session AND s.reaped + 0 = 0 AND s.expires_at > _now;
  IF NOT FOUND THEN
    _reply := '["gone"]';
    RETURN;
  END IF;
  SELECT n.token, n.session, n.fence, s.expires_at, coalesce(s.reaped + 0 = 0 AND s.expires_at > _now, false) AS lives
  INTO _hold FROM named n
  LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
  WHERE n.queue = _queue AND n.name = _name;
  IF NOT _hold.lives AND _hold.session <> ALL (_ended) THEN
    -- include: look-again
  END IF;
  IF _hold.lives AND _hold.token = _token THEN
    _reply := json_build_array('held', _hold.fence);
    RETURN;
  END IF;
  IF _mark IS NULL THEN
    PERFORM lapse_places(_queue, _now, _name);
    _mark := '{0,0}';
  END IF;
  _place := (
    SELECT place FROM lock_places WHERE queue = _queue AND name = _name AND token = _token AND kept_until > _now
    ORDER BY place + 0 LIMIT 1
  );
  _ahead := waiters_before(_queue, _now, _name, _place, _mark);
  IF NOT _hold.lives AND _ahead = 0 THEN
    -- A late renewal must not bring back the former holder, because that holder would trust its lock again.
    UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _hold.session AND reaped + 0 = 0;
    UPDATE named SET token = _token, session = _session, fence = nextval('fences'), since = _now
    WHERE queue = _queue AND name = _name RETURNING fence INTO _hold.fence;
    DELETE FROM lock_places WHERE queue = _queue AND name = _name AND token = _token;
    _mark := '{0,0}';
    _reply := json_build_array('held', _hold.fence);
    RETURN;
  END IF;
  IF _keep = 0 THEN
    DELETE FROM lock_places WHERE queue = _queue AND name = _name AND token = _token;
    IF FOUND THEN _mark := '{0,0}'; END IF;
  ELSE
    IF _place IS NULL THEN
      INSERT INTO lock_places (queue, name, token, session, kept_until)
      VALUES (_queue, _name, _token, _session, ceil(clock_ms() + _keep * 1.125)) RETURNING place INTO _place;
    ELSE
      UPDATE lock_places SET kept_until = ceil(clock_ms() + _keep * 1.125)
      WHERE queue = _queue AND name = _name AND place = _place;
    END IF;
    _mark := ARRAY[_place, _ahead];
  END IF;
  _reply := json_build_array('taken', NULL, _ahead, CASE WHEN _hold.lives THEN greatest(0, _hold.expires_at - _now) END);
END
$body$;
