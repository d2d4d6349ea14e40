-- Settling jobs: the outcomes of runs.

-- name: complete
-- Completes any job but a parent (MARK.parent = 4), whose links must be checked first. Returning the row makes it a sixth slower.
-- include: completed
AND marks & 4 = 0 RETURNING
-- include: left-columns
, attemptsMade - 1

-- name: complete-parent
-- Completes a parent whose links allow it.
-- include: completed
RETURNING
-- include: left-columns
, attemptsMade - 1

-- name: complete-plain
-- Completes a plain job: 3.4 µs a job, 3.0 µs if the row number were known. One statement for all jobs, with pairs of id and fence as
-- JSON, took 2.6 µs, but works only for jobs with the same value that end in the order of their fences. Reading all owners in one
-- statement and updating the rows in another took 17 % less, which is 4 % of the total cost of a job.
-- include: completed
AND
-- include: plain

-- name: complete-marked
-- Completes a job of a group, a child or both (MARK.key = 1, MARK.child = 2) whose extras are those that its claim has seen, so they need
-- not be returned: 3.3 µs a job instead of 5.1 µs.
-- include: completed
AND extras = :extras AND marks BETWEEN 1 AND 3 AND (marks & 1 = 1 OR
-- include: key
IS NULL)

-- name: complete-run
-- Completes the jobs of a run.
-- States: 4 completed.
UPDATE jobs SET state = 4, ord = job + CAST(:place AS INTEGER), finishedOn = :now, returnvalue = :value,
  attemptsMade = attemptsMade + 1,
-- include: lock-ended
WHERE
-- include: rows-of-run

-- name: completed-of-run
-- Returns the completed rows of a run by their new `ord`, which no other row has.
-- States: 4 completed.
SELECT job FROM jobs WHERE job BETWEEN :first AND :last AND queue = :queue AND state = 4 AND ord = job + :place

-- name: ends-of-run
-- Returns the rows of the first and the last job of a run.
SELECT a.job, b.job FROM jobs AS a CROSS JOIN jobs AS b WHERE a.queue = :queue AND a.id = :first AND b.queue = a.queue AND b.id = :last

-- name: count-of-run
-- Counts the rows between the first and the last job of a run.
SELECT count(*) FROM jobs WHERE job BETWEEN :first AND :last

-- name: left-of-run
-- Returns the rows between the first and the last job of a run.
SELECT job FROM jobs WHERE job BETWEEN :first AND :last

-- name: delay
-- Delays a running job, unless it has steps, and may wait for a signal (MARK.steps = 32), or was cancelled (MARK.cancelled = 256).
-- include: delayed
AND marks & 288 = 0 RETURNING
-- include: left-columns

-- name: delay-marked
-- Delays any running job.
-- include: delayed
RETURNING
-- include: left-columns

-- name: fail
-- Fails a job for good.
-- States: 5 failed.
UPDATE jobs SET state = 5, ord = :ord, finishedOn = :now,
-- include: counted-failure
,
-- include: lock-ended
WHERE
-- include: under-token
RETURNING
-- include: left-columns
, attemptsMade - 1

-- name: fail-and-remove
-- Deletes a job that fails and is not kept, unless more follows from it: a parent (MARK.parent = 4) has links, and a letter
-- (MARK.letter = 128) is a copy of the row.
DELETE FROM jobs WHERE
-- include: under-token
AND marks & 132 = 0 RETURNING
-- include: left-columns
, attemptsMade

-- name: finish-and-remove
-- Deletes a job that completes and is not kept, unless it is a parent (MARK.parent = 4), whose links must be checked first.
DELETE FROM jobs WHERE
-- include: under-token
AND marks & 4 = 0 RETURNING
-- include: left-columns
, attemptsMade

-- name: park
-- Lets a running job wait for its children.
-- States: 6 waiting-children.
UPDATE jobs SET state = 6, ord = :ord, delay = 0, dueAt = NULL,
-- include: unlocked
WHERE
-- include: under-token
RETURNING
-- include: left-columns

-- name: release
-- Hands a running job back. `unstarted`: 1 if the run has not started, so it does not count. A cancelled job (MARK.cancelled = 256) fails
-- instead.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, attemptsStarted = attemptsStarted - :unstarted,
-- include: unlocked
WHERE
-- include: under-token
AND marks & 256 = 0 RETURNING
-- include: left-columns

-- name: remove-run
-- Deletes the jobs of a run that complete and are not kept, unless they have logs, which must be deleted too. RETURNING took 0.4 µs more
-- for each job.
DELETE FROM jobs WHERE
-- include: rows-of-run
AND logNext = 0

-- name: retry-later
-- Delays a failed job, unless it has steps, and may wait for a signal (MARK.steps = 32), or was cancelled (MARK.cancelled = 256).
-- include: retried-later
AND marks & 288 = 0 RETURNING
-- include: left-columns

-- name: retry-marked-later
-- Delays any failed job.
-- include: retried-later
RETURNING
-- include: left-columns

-- name: retry-now
-- Lets a failed job wait again, unless it was cancelled (MARK.cancelled = 256).
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: under-token
AND marks & 256 = 0 RETURNING
-- include: left-columns

-- part: completed
-- Completes a job for its owner.
-- States: 4 completed.
UPDATE jobs SET state = 4, ord = :ord, finishedOn = :now, returnvalue = :value, attemptsMade = attemptsMade + 1,
-- include: lock-ended
WHERE
-- include: under-token

-- part: rows-of-run
-- The plain jobs of a run: consecutive rows whose ids and fences are consecutive too. CAST: a binding may pass numbers as REAL, and the
-- text of a REAL ends in ".0".
-- States: 3 active.
job BETWEEN :first AND :last AND queue = :queue AND state = 3 AND session = :session
  AND fence = job + CAST(:fence AS INTEGER) AND id = CAST(job + CAST(:id AS INTEGER) AS TEXT) AND
-- include: plain

-- part: delayed
-- Delays a running job for its owner.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, delay = :delay, dueAt = :dueAt,
-- include: unlocked
WHERE
-- include: under-token

-- part: counted-failure
-- Records the failure of an attempt.
attemptsMade = attemptsMade + 1, failedReason = :reason, stacktrace = :stacktrace

-- part: retried-later
-- Delays a failed job for its owner.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, delay = :delay, dueAt = :dueAt,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: under-token
