-- Sets _look: how many jobs wait, when the first delayed job is due, whether something is undone, whether groups have notes, the limit of
-- all groups, the minute of completed jobs, and whether the fast path applies: then only jobs of groups wait.
-- States: 1 waiting.
SELECT q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting,
  -- include: first-due
  AS due,
  -- include: any-undone
  AS undone, (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL AS noted,
  q.group_max, CASE WHEN q.metric_points IS NOT NULL THEN _now / 60000 END AS minute, q.grouped AND q.group_rate_max IS NULL AND
  -- include: unlimited
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= q.head_waiting ORDER BY ord LIMIT 1) IS NULL
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1) IS NULL
  AND (SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1) IS NULL AND NOT
  -- include: any-keyed
  AS fits
INTO _look
FROM sessions s, queues q,
  -- include: journal-sums
WHERE s.queue = _queue AND s.id = _session AND
  -- include: undoubted
  AND q.queue = _queue FOR KEY SHARE OF s;
