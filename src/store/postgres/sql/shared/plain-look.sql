-- Selects from `q` and `j`: where the list begins, how many jobs wait, when the first delayed job is due, whether something is undone,
-- and whether the fast path applies.
-- States: 1 waiting, 2 delayed.
q.head_waiting, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0),
CASE WHEN q.delayed + coalesce(j.delayed, 0) > 0 THEN (
  SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1
) END,
-- include: any-undone
, NOT q.paused AND q.limited_until <= _now AND q.window_ends <= _now AND q.max_active IS NULL AND q.rate_max IS NULL AND NOT q.grouped
  AND q.fenced_on = pg_postmaster_start_time() AND q.prioritized + coalesce(j.prioritized, 0) <= 0
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL AND NOT
-- include: any-keyed
