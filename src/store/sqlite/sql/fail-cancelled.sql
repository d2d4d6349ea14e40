-- Fails a cancelled row that would wait again, or one that has not run when it is cancelled. A delayed job loses its delay.
-- States: 2 delayed, 5 failed.
UPDATE jobs SET delay = CASE WHEN state = 2 THEN 0 ELSE delay END, dueAt = NULL, state = 5, ord = :ord, finishedOn = :now,
  failedReason = :reason,
-- include: unlocked
WHERE job = :job RETURNING opts
