-- Chooses the jobs that come first, of those without a key and of the first jobs of free keys, without locking any. Sets _chosen: how many,
-- how many without a key, and the ids of the others. The stretches are those of waiting-in-order.sql.
-- States: 1 waiting.
-- LAST_PRIORITY = 2147483647
SELECT count(*) AS jobs, count(*) FILTER (WHERE id IS NULL) AS plain, array_agg(id) FILTER (WHERE id IS NOT NULL) AS ids
INTO _chosen
FROM (
  SELECT * FROM (
    SELECT * FROM (
      SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0
      ORDER BY ord LIMIT _room
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head
      ORDER BY ord LIMIT _room
    ) s
    UNION ALL
    SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
      LATERAL (
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority
          ORDER BY priority, ord LIMIT _room
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 ORDER BY priority, ord LIMIT _room
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head
          ORDER BY priority, ord LIMIT _room
        ) s
      ) s
    UNION ALL
    SELECT j.* FROM unnest(_first._ids) o(id),
      LATERAL (SELECT priority, ord, id FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
  ) merged
  ORDER BY priority, ord LIMIT _room
) chosen;
