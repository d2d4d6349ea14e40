-- Resets a finished job to one that has not run: its stack trace and logs stay, and its attempts times 1 or 0. CASE: a delayed job keeps `processedOn` and
-- `failedReason` of its last attempt.
-- States: 4 completed, 5 failed.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, delay = 0, dueAt = NULL, attemptsMade = attemptsMade * :made, attemptsStarted = attemptsStarted * :started, session = NULL, fence = NULL, finishedOn = NULL, returnvalue = NULL,
  processedOn = CASE WHEN state IN (4, 5) THEN NULL ELSE processedOn END,
  failedReason = CASE WHEN state IN (4, 5) THEN NULL ELSE failedReason END
WHERE job = :job
