-- Delays a failed job, unless it has steps, and may wait for a signal (MARK.steps = 32), or was cancelled (MARK.cancelled = 256).
-- include: retried-later
AND marks & 288 = 0 RETURNING
-- include: left-columns
