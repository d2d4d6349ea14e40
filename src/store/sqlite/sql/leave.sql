-- Leaving a state: removing jobs, failing them, moving them to waiting.

-- name: delete-job
-- Deletes a row.
DELETE FROM jobs WHERE job = :job

-- name: delete-logs
-- Deletes the logs of a row.
DELETE FROM logs WHERE job = :job

-- name: stall
-- Lets a stalled row wait again.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: stalled
,
-- include: unlocked
WHERE job = :job

-- name: hand-back
-- Hands a row back to waiting.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: unlocked
WHERE job = :job

-- name: promote
-- Moves a delayed job to waiting.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, delay = 0, dueAt = NULL WHERE job = :job

-- name: set-state
-- Moves a row within its key group.
UPDATE jobs SET state = :state WHERE job = :job

-- name: fail-cancelled
-- Fails a cancelled row that would wait again, or one that has not run when it is cancelled. A delayed job loses its delay.
-- States: 2 delayed, 5 failed.
UPDATE jobs SET delay = CASE WHEN state = 2 THEN 0 ELSE delay END, dueAt = NULL, state = 5, ord = :ord, finishedOn = :now,
  failedReason = :reason,
-- include: unlocked
WHERE job = :job RETURNING opts

-- name: fail-stalled
-- Fails a row that stalled too often.
-- States: 5 failed.
UPDATE jobs SET state = 5, ord = :ord, finishedOn = :now, failedReason = :reason,
-- include: stalled
,
-- include: unlocked
WHERE job = :job RETURNING opts

-- part: to-waiting
-- Sets the state of a job that starts to wait. A job with a key is behind until key-groups.ts finds that it is the first.
-- States: 0 behind, 1 waiting.
state = CASE WHEN
-- include: key
IS NULL THEN 1 ELSE 0 END

-- part: stalled
-- Counts a stall, and records the session that lost the job.
stalledCounter = stalledCounter + 1, lostBy = :lostBy
