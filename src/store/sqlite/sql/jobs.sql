-- Reading jobs and lists of jobs, and the columns that many statements share.

-- name: find-job
-- Finds a job by its id (FoundRow in record.ts).
SELECT
-- include: held-columns
, state, dueAt, session, fence, logFirst, attemptsStarted
FROM jobs WHERE queue = :queue AND id = :id

-- name: read-job
-- Reads the whole record of a row.
SELECT
-- include: job-columns
FROM jobs WHERE job = :job

-- name: job-number
-- Returns the row number of a job.
SELECT job FROM jobs WHERE queue = :queue AND id = :id

-- name: bytes-of-job
-- Returns the bytes of a row.
SELECT
-- include: job-bytes
FROM jobs WHERE job = :job

-- name: list-active
-- Lists active jobs in the order of their claims: rows and their bytes.
-- States: 3 active.
SELECT job,
-- include: job-bytes
FROM jobs WHERE queue = :queue AND state = 3
ORDER BY fence LIMIT :count + 0 OFFSET :skipped

-- name: list-behind
-- Lists jobs behind another job of their key: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: behind-of-priority
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped

-- name: list-delayed
-- Lists delayed jobs: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: delayed-jobs
ORDER BY dueAt, ord LIMIT :count + 0 OFFSET :skipped

-- name: list-finished
-- Lists finished jobs: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0 OFFSET :skipped

-- name: list-grouped
-- Lists jobs of a group in one state: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: of-group
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped

-- name: list-waiting
-- Lists waiting jobs in the claim order: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: waiting-of-priority
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped

-- name: count-behind
-- Counts jobs behind another job of their key, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: behind-of-priority
LIMIT :count + 0)

-- name: count-waiting
-- Counts jobs in the claim order, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: waiting-of-priority
LIMIT :count + 0)

-- part: left-columns
-- Columns of a job that leaves a state (LeftRow in record.ts). A job of a group has no lock key: its first mark is set.
job, id, priority, logNext, CASE marks & 1 WHEN 0 THEN
-- include: key
END, marks, extras

-- part: job-columns
-- All columns of a record (JobRow in record.ts).
job, id, name, data, opts, state, priority, delay, timestamp, attemptsMade, attemptsStarted, stalledCounter,
processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress, lostBy, extras

-- part: job-bytes
-- Bytes of the payloads of a job. SQLite knows them without reading the payloads.
octet_length(data) + coalesce(octet_length(returnvalue), 0) + coalesce(octet_length(progress), 0)
  + coalesce(octet_length(stacktrace), 0)

-- part: key
-- The column of a job's key: the lock key that its user chose, or the key of its group (`of-group` in groups.sql).
lockKey

-- part: plain
-- A job whose moves concern no other row: no key becomes free, and no mark asks for work. Fast paths are for these jobs alone.
marks = 0 AND
-- include: key
IS NULL

-- part: held-columns
-- Columns of an active job whose lock ends without an outcome (HeldRow in record.ts).
-- include: left-columns
, stalledCounter

-- part: unlocked
-- Ends the lock of a job that does not finish.
session = NULL, fence = NULL,
-- include: lock-ended

-- part: lock-ended
-- Ends the lock of a job that finishes. The token that finished the job stays, so the store recognises a repeated finish.
claimSeq = NULL, endsAt = NULL, timed = 0

-- part: under-token
-- The update itself checks the owner: it finds the row only under the current token.
-- States: 3 active.
queue = :queue AND id = :id AND state = 3 AND session = :session AND fence = :fence

-- part: waiting-of-priority
-- Jobs in the claim order with a range of priorities.
-- States: 1 waiting.
FROM jobs WHERE queue = :queue AND state = 1 AND priority BETWEEN :least AND :most

-- part: behind-of-priority
-- Jobs behind another job of their key, with a range of priorities.
-- States: 0 behind.
FROM jobs WHERE queue = :queue AND state = 0 AND priority BETWEEN :least AND :most

-- part: delayed-jobs
-- Delayed jobs.
-- States: 2 delayed.
FROM jobs WHERE queue = :queue AND state = 2

-- part: finished-jobs
-- Jobs of one finished state, by the index of all finished jobs.
-- States: 4 completed.
FROM jobs WHERE queue = :queue AND state >= 4 AND state = :state
