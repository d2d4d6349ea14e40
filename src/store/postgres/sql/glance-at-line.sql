-- The reply to a request that changes nothing: its session holds the lock already, or waits behind others and has asked a moment ago.
-- When a lock comes free, all its waiters ask at once. If each of them locked and wrote, the first waiter would wait for the commits of
-- the others. Null: the request must be decided under the lock of the name.
-- _mark: see waiters-before.sql. It comes back with the place of this request.
-- Called by: acquire.sql.
-- SPARE = 1.125: see acquire-in-line.sql.
CREATE FUNCTION glance_at_line(
  _queue int, _now bigint, _name text, _token text, _session text, _keep float8, INOUT _mark bigint[], OUT _reply text
) LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _ahead bigint;
BEGIN
  SELECT _name AS name, n.token, n.fence, s.expires_at, coalesce(s.reaped + 0 = 0 AND s.expires_at > _now, false) AS lives,
    p.place, p.kept_until
  INTO _one
  FROM (
    SELECT FROM sessions s WHERE queue = _queue AND id = _session AND s.reaped + 0 = 0 AND s.expires_at > _now AND NOT suspected
  ) own
  LEFT JOIN LATERAL (SELECT * FROM named WHERE queue = _queue AND named.name = _name OFFSET 0) n ON true
  LEFT JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = n.session OFFSET 0) s ON true
  LEFT JOIN LATERAL (
    SELECT * FROM lock_places WHERE queue = _queue AND lock_places.name = _name AND token = _token ORDER BY place + 0 LIMIT 1
  ) p ON true;
  IF _one.lives AND _one.token = _token THEN
    _reply := json_build_array('held', _one.fence);
    RETURN;
  END IF;
  IF _keep = 0 OR _one.place IS NULL OR _one.kept_until < _now + _keep THEN RETURN; END IF;
  -- An earlier request asked to keep the place for longer; this request shortens it.
  IF _one.kept_until > _now + _keep * 1.125 + 1 THEN RETURN; END IF;
  _ahead := waiters_before(_queue, _now, _name, _one.place, _mark);
  _mark := ARRAY[_one.place, _ahead];
  IF _one.lives OR _ahead > 0 THEN
    _reply := json_build_array('taken', NULL, _ahead, CASE WHEN _one.lives THEN _one.expires_at - _now END);
  END IF;
END
$body$;
