-- Changing jobs, and selecting jobs to change.

-- name: change-delay
-- Changes the delay of a row.
UPDATE jobs SET delay = :delay, dueAt = :dueAt, ord = :ord WHERE job = :job

-- name: change-priority
-- Changes the priority of a job, and its place if one is given.
UPDATE jobs SET priority = :priority, ord = coalesce(:ord, ord) WHERE job = :job

-- name: move-to-waiting
-- Resets a finished job to one that has not run: its stack trace and logs stay, and its attempts times 1 or 0. CASE: a delayed job keeps
-- `processedOn` and `failedReason` of its last attempt.
-- States: 4 completed, 5 failed.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, delay = 0, dueAt = NULL, attemptsMade = attemptsMade * :made, attemptsStarted = attemptsStarted * :started, session = NULL, fence = NULL, finishedOn = NULL, returnvalue = NULL,
  processedOn = CASE WHEN state IN (4, 5) THEN NULL ELSE processedOn END,
  failedReason = CASE WHEN state IN (4, 5) THEN NULL ELSE failedReason END
WHERE job = :job

-- name: select-active
-- Returns active jobs, the oldest first.
-- States: 3 active.
SELECT
-- include: left-columns
FROM jobs WHERE queue = :queue AND state = 3
-- include: older
ORDER BY job LIMIT :count + 0

-- name: select-behind
-- Returns jobs behind another job of their key.
SELECT
-- include: left-columns
-- include: behind-of-priority
-- include: older
ORDER BY priority, ord LIMIT :count + 0

-- name: select-delayed
-- Returns delayed jobs, the one that is due first at first.
SELECT
-- include: left-columns
-- include: delayed-jobs
-- include: older
ORDER BY dueAt, ord LIMIT :count + 0

-- name: select-delayed-by-age
-- Returns delayed jobs, the oldest first.
SELECT
-- include: left-columns
-- include: delayed-jobs
-- include: older
ORDER BY job LIMIT :count + 0

-- name: select-parents
-- Returns jobs that wait for children, in the order in which they began to.
SELECT
-- include: left-columns
-- include: parents-of-queue
-- include: older
ORDER BY ord LIMIT :count + 0

-- name: select-parents-by-age
-- Returns jobs that wait for children, the oldest first.
SELECT
-- include: left-columns
-- include: parents-of-queue
-- include: older
ORDER BY job LIMIT :count + 0

-- name: select-waiting
-- Returns jobs in the claim order.
SELECT
-- include: left-columns
-- include: waiting-of-priority
-- include: older
ORDER BY priority, ord LIMIT :count + 0

-- name: select-waiting-by-age
-- Returns waiting jobs, the oldest first.
SELECT
-- include: left-columns
-- include: waiting-of-priority
-- include: older
UNION ALL SELECT
-- include: left-columns
-- include: behind-of-priority
-- include: older
ORDER BY job LIMIT :count + 0

-- part: older
-- Jobs that wait or are delayed since a moment or longer. A job that ran counts from its last start. `passed`: the marks of jobs that
-- are passed over. `letters`: 1 for letters alone.
AND coalesce(processedOn, addedAt) <= :latest AND marks & :passed = 0 AND (:letters = 0 OR json_extract(extras, '$.o') IS NOT NULL)

-- part: parents-of-queue
-- Jobs that wait for children, by the index of the finished jobs.
-- States: 4 completed, 6 waiting-children.
FROM jobs WHERE queue = :queue AND state >= 4 AND state = 6
