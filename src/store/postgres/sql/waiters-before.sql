-- Returns the number of waiters in line before a place, or of all waiters (_place: null). _mark: a place of the same line and the number of
-- waiters before it, so that the requests of one call count each part of the line once.
-- Called by: glance-at-line.sql, acquire-in-line.sql.
CREATE FUNCTION waiters_before(_queue int, _now bigint, _name text, _place bigint, _mark bigint[]) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _from bigint := 0;
  _before bigint := 0;
BEGIN
  IF _place IS NULL OR _place >= _mark[1] THEN
    _from := _mark[1];
    _before := _mark[2];
  END IF;
  RETURN _before + (
    SELECT count(*) FROM (
      SELECT * FROM lock_places
      WHERE queue = _queue AND name = _name AND place >= _from AND (_place IS NULL OR place < _place) ORDER BY place OFFSET 0
    ) p
    JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = p.session OFFSET 0) s ON true
    WHERE p.kept_until > _now AND s.reaped + 0 = 0 AND s.expires_at > _now
  );
END
$body$;
