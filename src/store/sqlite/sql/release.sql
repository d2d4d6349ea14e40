-- Hands a running job back. `unstarted`: 1 if the run has not started, so it does not count. A cancelled job (MARK.cancelled = 256) fails instead.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, attemptsStarted = attemptsStarted - :unstarted,
-- include: unlocked
WHERE
-- include: owned
AND marks & 256 = 0 RETURNING
-- include: left-columns
