-- Sets _look: the row of the queue, how many jobs wait and are delayed, whether one stretch has all waiting jobs (`in_line`), whether
-- jobs with a key may be claimed, and whether something is undone.
-- States: 1 waiting.
SELECT q AS row, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting,
  q.delayed + coalesce(j.delayed, 0) AS delayed,
  q.prioritized + coalesce(j.prioritized, 0) + _change.prioritized <= 0
    AND (
      SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
    ) IS NULL AS in_line,
  -- include: any-keyed-alive
  AS keyed,
  -- include: any-undone
  AS undone
INTO _look
FROM queues q,
  -- include: journal-sums
WHERE q.queue = _queue;
