-- Locks of jobs.

-- name: find-lock
-- Returns the lock of a job with its owner.
-- States: 3 active.
SELECT session, fence, processedOn, endsAt, timed, host, pid, sessions.name, instance, expiresAt, reaped
FROM jobs JOIN sessions ON sessions.queue = jobs.queue AND sessions.id = jobs.session
WHERE jobs.queue = :queue AND jobs.id = :id AND state = 3

-- name: owned-locks
-- Lists the locks of a session.
SELECT id, fence, claimSeq
-- include: held-by-session
ORDER BY fence

-- name: extend-lock
-- Moves the end of a lock. With `alone` = 1, the lock becomes a timed lock.
UPDATE jobs SET endsAt = :endsAt, timed = timed | :alone WHERE
-- include: under-token

-- name: record-notice
-- Records a notice for the owner of a lock. `kind`: null if the lock was taken away.
INSERT INTO revocations (queue, session, number, job, fence, reason, kind) VALUES (:queue, :session, :number, :id, :fence, :reason, :kind)

-- name: number-notice
-- Returns the number of the next notice of a session.
UPDATE sessions SET revoked = revoked + 1 WHERE queue = :queue AND id = :session RETURNING revoked

-- name: read-notices
-- Reads the notices of a session that come after a number.
SELECT number, job, fence, reason, kind FROM revocations WHERE queue = :queue AND session = :session AND number > :number ORDER BY number

-- name: delete-notices
-- Deletes the notices of a session up to a number.
DELETE FROM revocations WHERE queue = :queue AND session = :session AND number <= :number

-- part: locks-of-session
-- Number of jobs that each session holds.
-- States: 3 active.
(SELECT count(*) FROM jobs WHERE jobs.queue = sessions.queue AND state = 3 AND session = sessions.id)

-- part: held-by-session
-- Jobs that a session holds.
-- States: 3 active.
FROM jobs WHERE queue = :queue AND state = 3 AND session = :session
