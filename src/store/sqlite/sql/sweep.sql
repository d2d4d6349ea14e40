-- Sweeping: what a dead session leaves behind.

-- name: any-dead
-- Returns a row if a sweep would find anything.
SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE queue = :queue AND reaped < 2 AND expiresAt <= :now)
  OR EXISTS (SELECT 1 FROM jobs WHERE queue = :queue AND endsAt IS NOT NULL AND endsAt <= :now)
  OR EXISTS (SELECT 1 FROM dedup WHERE queue = :queue AND until IS NOT NULL AND until <= :now)

-- name: bound-jobs
-- Returns the jobs that a session claimed last, without those whose locks have their own end. The last one comes first.
SELECT
-- include: held-columns
-- include: held-by-session
AND endsAt IS NULL ORDER BY claimSeq DESC, fence DESC LIMIT :count + 0

-- name: clear-end
-- Removes the own end of a lock.
UPDATE jobs SET endsAt = NULL WHERE job = :job

-- name: empty-sessions
-- Returns ended sessions that hold nothing any more.
-- States: 3 active.
SELECT queue, id FROM sessions WHERE reaped = 2
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = sessions.queue AND state = 3 AND session = sessions.id)

-- name: ended-locks
-- Returns jobs whose lock has reached its own end.
SELECT
-- include: held-columns
, session, timed FROM jobs WHERE queue = :queue AND endsAt IS NOT NULL AND endsAt <= :now ORDER BY endsAt LIMIT :count + 0

-- name: expired-session
-- Returns the session that expired first.
SELECT
-- include: owner-columns
, id FROM sessions WHERE queue = :queue AND reaped < 2 AND expiresAt <= :now ORDER BY expiresAt LIMIT 1

-- name: reap-session
-- Ends a session.
UPDATE sessions SET reaped = :reaped WHERE queue = :queue AND id = :session
