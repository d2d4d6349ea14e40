-- Locks up to _most waiting jobs without a key in each stretch of their list, the first ones first: jobs at the front, jobs without a
-- priority behind the head, and jobs with a priority, without the stretches that have no living row (find-dead-ranges.sql).
-- States: 1 waiting.
-- LAST_PRIORITY = 2147483647
SELECT * FROM (
  SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
  WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 AND (xmax = 0 OR untouched(xmax))
  ORDER BY ord LIMIT _most FOR UPDATE SKIP LOCKED
) s
UNION ALL
SELECT * FROM (
  SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
  WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
  ORDER BY ord LIMIT _most FOR UPDATE SKIP LOCKED
) s
UNION ALL
SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
  LATERAL (
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
  ) s
