-- Returns the limits of all groups, and groups by their keys (_keys) or a page of them: those that have waiting or active jobs, or settings.
-- Called by: inspect.ts.
CREATE FUNCTION groups_of(_name text, _keys text[], _limit int, _after text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _now bigint := floor(clock_ms());
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_build_object(
      'rules', (
        SELECT json_strip_nulls(
          json_build_object('maxActive', q.group_max, 'rate', CASE WHEN q.group_rate_max IS NOT NULL THEN json_build_object(
            'max', q.group_rate_max, 'durationMs', q.group_rate_ms
          ) END)
        )
        FROM queues q WHERE q.queue = _queue
      ), 'groups', coalesce(json_agg(
        json_strip_nulls(
          json_build_object('key', key, 'paused', coalesce(paused, false), 'active', active, 'maxActive', max_active, 'rate',
            CASE WHEN rate_max IS NOT NULL THEN json_build_object('max', rate_max, 'durationMs', rate_ms) END, 'limitedMs',
            CASE WHEN rests_until > _now THEN rests_until - _now END, 'waiting',
            CASE WHEN _keys IS NOT NULL THEN group_waits(_queue, key, 9000000000000000) END)
        ) ORDER BY n, key
      ), '[]')
    )
    FROM (
      SELECT k.n, k.key, g.paused, coalesce(g.active, 0) - coalesce(f.freed, 0) AS active, g.max_active, g.rate_max, g.rate_ms,
        g.rests_until
      FROM (
        -- include: asked-groups
      ) k
      LEFT JOIN LATERAL (SELECT * FROM groups g WHERE g.queue = _queue AND g.key = k.key OFFSET 0) g ON true
      LEFT JOIN LATERAL (SELECT sum(freed) AS freed FROM group_notes n WHERE n.queue = _queue AND n.key = k.key OFFSET 0) f ON true
      WHERE _keys IS NOT NULL OR g.paused OR g.max_active IS NOT NULL OR g.rate_max IS NOT NULL OR g.active > coalesce(f.freed, 0)
        OR group_waits(_queue, k.key, 1) > 0
      LIMIT _limit
    ) found
  );
END
$body$;
