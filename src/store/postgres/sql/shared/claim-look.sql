-- Sets _look: the row of the queue, whether the session lives, its last call, whether jobs wait, whether the cap is reached, when the first
-- delayed job is due, whether jobs wait behind their keys, and whether something is undone.
-- States: -1 behind, 2 delayed.
SELECT q AS row,
  EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now) AS alive,
  coalesce((SELECT seq FROM callers WHERE queue = _queue AND id = _session), 0) AS last,
  q.waiting + q.prioritized + coalesce(
    (SELECT sum(waiting + prioritized) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
  ) > 0 AS waiting,
  CASE WHEN q.max_active IS NOT NULL THEN q.active + coalesce(
    (SELECT sum(active) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
  ) >= q.max_active ELSE false END AS full,
  (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1) AS due,
  (
    SELECT EXISTS (
      SELECT * FROM (
        SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
      ) s
      UNION ALL
      SELECT * FROM (
        SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND (priority, ord) >= (0, dead.head_keyed)
        ORDER BY priority, ord LIMIT 1
      ) s LIMIT 1
    )
    FROM (SELECT head_keyed, head_freed FROM dead_ranges WHERE queue = _queue UNION ALL SELECT 0, 0 LIMIT 1) dead
  ) AS behind,
  -- include: any-undone
  AS undone
INTO _look FROM queues q WHERE queue = _queue;
