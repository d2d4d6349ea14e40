-- Sets _seen: the first jobs that claims look at for their keys.
-- States: 0 keyed.
-- LOOKED_AT = 500
SELECT array_agg(id) AS ids, array_agg(lock_key) AS keys, count(*) AS many INTO _seen
FROM (
  SELECT * FROM (
    SELECT id, lock_key FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 AND ord < 0
    ORDER BY priority, ord LIMIT 500
  ) s
  UNION ALL
  SELECT * FROM (
    SELECT id, lock_key FROM jobs WHERE queue = _queue AND state = 0 AND (priority, ord) >= (0, _head_keyed)
    ORDER BY priority, ord LIMIT 500
  ) s LIMIT 500
) seen;
