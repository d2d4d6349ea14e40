-- When the first delayed job of the queue `q` is due. `j`: the sums of its journal.
-- States: 2 delayed.
CASE WHEN q.delayed + coalesce(j.delayed, 0) > 0 THEN (
  SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1
) END
