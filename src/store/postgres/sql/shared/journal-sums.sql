-- The sums of the journal of the queue `q`, as far as fast paths need them.
LATERAL (
  SELECT sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed FROM journal
  WHERE journal.queue = q.queue AND journal.number >= q.journal_from
) j
