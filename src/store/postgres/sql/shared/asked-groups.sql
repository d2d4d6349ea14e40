-- The keys of the groups that a query asks for, with their places: those of _keys, or all that have a row or notes, from the first one after
-- _after on. A group may have notes and no row yet. Each step takes the next key of one of two indexes, so a page that stops early reads no
-- further key. It searches that index alone: a search in the other one would walk over the same dead entries in each step.
SELECT n, key COLLATE "C" AS key FROM unnest(_keys) WITH ORDINALITY u(key, n)
UNION ALL
SELECT 0, key FROM (
  WITH RECURSIVE walk(key, next_row, next_note) AS (
    SELECT NULL COLLATE "C",
      (SELECT g.key FROM groups g WHERE g.queue = _queue AND g.key > coalesce(_after, '') ORDER BY g.key LIMIT 1),
      (SELECT n.key FROM group_notes n WHERE n.queue = _queue AND n.key > coalesce(_after, '') ORDER BY n.key LIMIT 1)
    WHERE _keys IS NULL
    UNION ALL
    SELECT least(next_row, next_note),
      CASE WHEN next_row <= coalesce(next_note, next_row) THEN (
        SELECT g.key FROM groups g WHERE g.queue = _queue AND g.key > next_row ORDER BY g.key LIMIT 1
      ) ELSE next_row END,
      CASE WHEN next_note <= coalesce(next_row, next_note) THEN (
        SELECT n.key FROM group_notes n WHERE n.queue = _queue AND n.key > next_note ORDER BY n.key LIMIT 1
      ) ELSE next_note END
    FROM walk WHERE coalesce(next_row, next_note) IS NOT NULL
  )
  SELECT key FROM walk WHERE key IS NOT NULL
) walked
