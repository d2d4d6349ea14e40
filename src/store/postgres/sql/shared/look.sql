-- The sessions and locks that a sweep looks for. `looked`: the expiry of the first session that is due for a check.
-- PRUNE_EVERY_MS = 60000: how often a sweep prunes rows that are no longer needed, per schema.
SELECT queue,
  (
    SELECT ends_at FROM jobs WHERE queue = q.queue AND ends_at IS NOT NULL AND ends_at <= _now ORDER BY ends_at LIMIT 1
  ) IS NOT NULL AS ended,
  (SELECT expires_at FROM sessions WHERE queue = q.queue AND reaped < 2 AND look_at <= _now ORDER BY look_at LIMIT 1) AS looked,
  EXISTS (SELECT FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from)
    OR (SELECT pruned_at FROM holdfast_schema) <= _now - 60000 AS upkeep
