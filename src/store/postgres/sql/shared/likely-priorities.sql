-- Selects the priorities that waiting jobs have or had: those remembered before, of waiting jobs, and of some active jobs.
-- States: 1 waiting, 3 active.
-- MOST_PRIORITIES = 32
-- SAMPLE = 50: how many active jobs are sampled for their priorities.
SELECT priority FROM (
  SELECT unnest(_old.priorities) AS priority
  UNION
  SELECT * FROM (
    WITH RECURSIVE waiting(priority) AS (
      SELECT (SELECT priority FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1)
      UNION ALL
      SELECT (
        SELECT priority FROM jobs WHERE queue = _queue AND state = 1 AND priority > waiting.priority
        ORDER BY priority, ord LIMIT 1
      )
      FROM waiting WHERE priority IS NOT NULL
    )
    SELECT priority FROM waiting WHERE priority IS NOT NULL LIMIT 32
  ) w
  UNION
  SELECT priority FROM (
    SELECT priority FROM jobs WHERE queue = _queue AND state = 3 AND _prioritized ORDER BY session DESC, fence DESC LIMIT 50
  ) j
  WHERE priority > 0
) merged
ORDER BY priority LIMIT 32
