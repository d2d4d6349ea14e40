-- True if claims may find jobs with a key.
-- States: 0 keyed.
(
  (SELECT ord FROM jobs WHERE queue = _queue AND state = 0 ORDER BY priority, ord LIMIT 1) IS NOT NULL
    OR (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL
)
