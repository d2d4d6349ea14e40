-- Hands a running job back. `unstarted`: 1 if the run has not started, so it does not count.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, attemptsStarted = attemptsStarted - :unstarted,
-- include: unlocked
WHERE
-- include: owned
RETURNING
-- include: left-columns
