-- Claiming jobs.

-- name: any-claimable
-- Returns a row if a job is in the claim order.
-- States: 1 waiting.
SELECT 1 FROM jobs WHERE queue = :queue AND state = 1 LIMIT 1

-- name: claimed-before
-- Returns the jobs that a call has claimed.
SELECT
-- include: job-columns
, fence
-- include: held-by-session
AND claimSeq = :seq ORDER BY fence

-- name: due-jobs
-- Returns delayed jobs that are due, the first one first.
SELECT
-- include: left-columns
-- include: delayed-jobs
AND dueAt <= :now ORDER BY dueAt, ord LIMIT :count + 0

-- name: next-due
-- Returns when the next delayed job is due.
SELECT min(dueAt)
-- include: delayed-jobs

-- name: sessions-sharing
-- Returns the sessions that share the cap, and the number of jobs that each holds.
SELECT id, slots,
-- include: locks-of-session
FROM sessions WHERE queue = :queue AND reaped = 0 AND expiresAt > :now

-- name: take-listed
-- Grants the locks of listed rows, with consecutive fences. Selecting the jobs in the same statement (UPDATE … RETURNING) took 5.5 µs a
-- job, two statements 3.9 µs. No room is reserved in a new row for what a claim and a finish write into it: it would make both 6 to 9 %
-- cheaper, but adding 10 % dearer.
UPDATE jobs SET
-- include: taken
, fence = :fence + taken.key FROM json_each(:jobs) AS taken WHERE job = taken.value

-- name: take-run
-- Grants the locks of neighbours in the table, with consecutive fences. One statement for a range of them takes 1.4 µs a job, one
-- statement that lists each of them 1.9 µs, and one statement per job 2.8 µs. CAST: a binding may pass numbers as REAL.
UPDATE jobs SET
-- include: taken
, fence = job + CAST(:fence AS INTEGER) WHERE job BETWEEN :first AND :last

-- name: waiting-jobs
-- Returns the first jobs in the claim order (WaitingRow in record.ts).
-- States: 1 waiting.
SELECT
-- include: waiting-columns
FROM jobs WHERE queue = :queue AND state = 1 ORDER BY priority, ord LIMIT :count + 0

-- part: taken
-- Grants the lock of a job to a session.
-- States: 3 active.
state = 3, session = :session, claimSeq = :seq, processedOn = :now, processedBy = :by, endsAt = :endsAt, timed = :timed,
attemptsStarted = attemptsStarted + 1

-- part: waiting-columns
-- Columns that a claim needs of a job that never ran (WaitingRow in record.ts). If `worn` is 1, the caller reads the whole row. Nine
-- columns take 1.0 µs a job, all twenty 1.9 µs. `longest`: the longest `data` that is read at once; a longer one is null.
job, id, name, CASE WHEN octet_length(data) <= :longest THEN data END, opts, priority, timestamp, (
-- Whether a job has run, or was delayed, so that its record needs more columns than those of a new job.
attemptsMade + attemptsStarted + stalledCounter + delay > 0 OR coalesce(
  processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress) IS NOT NULL
) AS worn, extras
