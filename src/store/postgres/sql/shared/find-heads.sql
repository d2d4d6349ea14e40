-- Searches the heads of the lists. The longer this search takes, the less often it is made.
-- States: 1 waiting, 4 completed, 5 failed.
-- HEAD_PAUSES = 20: the pause after a search for the heads is at least this many times as long as the search.
-- LONGEST_PAUSE_MS = 2000: a search that took long because the machine was busy must not cause a long pause.
_since := clock_ms();
_row.journal_from := find_dead_ranges(_queue, _row.prioritized > 0, _passed);
UPDATE queues
SET journal_from = _row.journal_from,
  head_waiting = coalesce(
    (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= 0 ORDER BY ord LIMIT 1), head_waiting
  ),
  head_completed = coalesce(
    (SELECT ord FROM jobs WHERE queue = _queue AND state >= 4 AND state = 4 ORDER BY ord LIMIT 1), head_completed
  ),
  head_failed = coalesce(
    (SELECT ord FROM jobs WHERE queue = _queue AND state >= 4 AND state = 5 ORDER BY ord LIMIT 1), head_failed
  ),
  headed_at = _now + least(20 * (clock_ms() - _since), 2000)
WHERE queue = _queue;
