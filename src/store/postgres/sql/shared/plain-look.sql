-- Selects from `q` and `j`: where the list begins, how many jobs wait, when the first delayed job is due, whether something is undone,
-- and whether the fast path applies.
-- States: 1 waiting.
q.head_waiting, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0),
-- include: first-due
,
-- include: any-undone
, NOT q.grouped AND
-- include: unlimited
  AND q.prioritized + coalesce(j.prioritized, 0) <= 0
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL AND NOT
-- include: any-keyed
