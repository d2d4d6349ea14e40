-- True if claims may find jobs with a key. Starts behind dead rows (find-dead-ranges.sql).
-- States: 0 keyed.
(
  SELECT EXISTS (
    SELECT * FROM (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 0 AND (priority, ord) >= (0, dead.head_keyed)
      ORDER BY priority, ord LIMIT 1
    ) s LIMIT 1
  ) OR (SELECT number FROM freed_keys WHERE queue = _queue AND number >= dead.head_freed ORDER BY number LIMIT 1) IS NOT NULL
  FROM (SELECT head_keyed, head_freed FROM dead_ranges WHERE queue = _queue UNION ALL SELECT 0, 0 LIMIT 1) dead
)
