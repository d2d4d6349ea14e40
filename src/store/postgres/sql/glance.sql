-- The reply to a request that changes nothing: its session holds the lock already, or waits behind others and has asked a moment ago.
-- When a lock comes free, all its waiters ask at once. If each of them locked and wrote, the first waiter would wait for the commits of
-- the others. Null: the request must be decided under the lock of the name.
-- Called by: acquire.sql.
-- SPARE = 1.125: see acquire-one.sql.
CREATE FUNCTION glance(
  _queue int, _now bigint, _name text, _token text, _session text, _keep float8
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _place bigint;
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
    SELECT * FROM lock_places WHERE queue = _queue AND lock_places.name = _name AND token = _token ORDER BY place LIMIT 1
  ) p ON true;
  IF _one.lives AND _one.token = _token THEN RETURN json_build_array('held', _one.fence); END IF;
  IF _keep = 0 OR _one.place IS NULL OR _one.kept_until < _now + _keep THEN RETURN NULL; END IF;
  -- An earlier request asked to keep the place for longer; this request shortens it.
  IF _one.kept_until > _now + _keep * 1.125 + 1 THEN RETURN NULL; END IF;
  _place := _one.place;
  IF _one.lives THEN
    RETURN json_build_array(
      'taken', NULL,
      -- include: waiters-ahead
      , _one.expires_at - _now
    );
  END IF;
  RETURN (
    SELECT json_build_array('taken', NULL, ahead, NULL)
    FROM (
      SELECT
        -- include: waiters-ahead
        AS ahead
    ) line
    WHERE ahead > 0
  );
END
$body$;
