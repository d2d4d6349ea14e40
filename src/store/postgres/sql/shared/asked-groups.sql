-- The keys of the groups that a query asks for, with their places: those of _keys, or a page of the groups that have waiting or active jobs, or
-- settings. A group may have notes and no row yet.
SELECT n, key COLLATE "C" AS key FROM (
  SELECT n, key COLLATE "C" AS key FROM unnest(_keys) WITH ORDINALITY u(key, n)
  UNION ALL
  SELECT 0, key FROM (
    SELECT key FROM groups g
    WHERE queue = _queue AND key > coalesce(_after, '') AND _keys IS NULL AND (
      paused OR max_active IS NOT NULL OR rate_max IS NOT NULL OR group_waits(_queue, g.key, 1) > 0
      OR active > coalesce((SELECT sum(freed) FROM group_notes n WHERE n.queue = _queue AND n.key = g.key), 0)
    )
    ORDER BY key LIMIT _limit
  ) s
  UNION ALL
  SELECT 0, key FROM (
    SELECT DISTINCT key FROM group_notes n
    WHERE queue = _queue AND key > coalesce(_after, '') AND _keys IS NULL
      AND NOT EXISTS (SELECT FROM groups g WHERE g.queue = _queue AND g.key = n.key) AND group_waits(_queue, n.key, 1) > 0
  ) s
) merged ORDER BY n, key LIMIT _limit
