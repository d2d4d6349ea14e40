-- Sessions: opening, renewing, closing, and the suspicion that their owners are dead.

-- name: open-session
-- Opens a session. Changes nothing if its id exists.
INSERT INTO sessions (queue, id, host, pid, name, instance, presence, slots, graceMs, durationMs, maxStalls, since, expiresAt)
VALUES (:queue, :id, :host, :pid, :name, :instance, :presence, :slots, :graceMs, :durationMs, :maxStalls, :now, :expiresAt)
ON CONFLICT DO NOTHING

-- name: find-session
-- Finds a session as the owner of locks.
SELECT
-- include: owner-columns
, reaped FROM sessions WHERE queue = :queue AND id = :session

-- name: session-alive
-- Returns a row if a session is alive.
SELECT 1 FROM sessions WHERE queue = :queue AND id = :session AND reaped = 0 AND expiresAt > :now

-- name: list-sessions
-- Lists the open sessions.
SELECT id, host, pid, name, instance, slots, durationMs, since, renewals, expiresAt, suspected,
-- include: locks-of-session
FROM sessions WHERE queue = :queue AND reaped = 0 ORDER BY since, id

-- name: renew-session
-- Renews a session. A renewal writes only this, whatever the session holds. The duration is rounded up: the SQLite of Deno has no
-- ceil().
UPDATE sessions SET expiresAt = :now + CAST(durationMs AS INTEGER) + (durationMs > CAST(durationMs AS INTEGER)),
  renewals = renewals + 1, suspected = 0
WHERE queue = :queue AND id = :session AND reaped = 0 RETURNING revoked

-- name: set-slots
-- Changes the slots of a session.
UPDATE sessions SET slots = :slots WHERE queue = :queue AND id = :session AND slots <> :slots

-- name: delete-session
-- Deletes a session.
DELETE FROM sessions WHERE queue = :queue AND id = :session

-- name: count-held
-- Counts the jobs that a session holds.
SELECT count(*)
-- include: held-by-session

-- name: held-jobs
-- Returns the jobs that a session claimed last, the last one first.
SELECT
-- include: held-columns
-- include: held-by-session
ORDER BY claimSeq DESC, fence DESC LIMIT :count + 0

-- name: check-session
-- Returns whether an open session is alive and not suspected, and whether there is a notice for it.
SELECT suspected = 0 AND expiresAt > :now,
  revoked > 0 AND EXISTS (SELECT 1 FROM revocations WHERE revocations.queue = sessions.queue AND revocations.session = sessions.id)
FROM sessions WHERE queue = :queue AND id = :session AND reaped = 0

-- name: count-sessions
-- Counts the sessions of a queue.
SELECT count(*) FROM sessions WHERE queue = :queue AND reaped < 2

-- name: first-suspected-end
-- Returns when the first suspected session expires.
SELECT min(expiresAt) FROM sessions WHERE queue = :queue AND reaped = 0 AND suspected = 1

-- name: next-presence
-- Returns the next presence file of sessions that are not suspected. Steps from one process to the next, because DISTINCT would scan
-- all their sessions.
SELECT min(presence)
-- Open sessions that are not suspected.
FROM sessions WHERE queue = :queue AND reaped = 0 AND suspected = 0
AND presence > :presence

-- name: presence-named
-- Returns a row if a session names a presence file.
SELECT 1 FROM sessions WHERE presence = :presence LIMIT 1

-- name: suspect
-- Suspects the sessions of a dead process. The grace is rounded up: the SQLite of Deno has no ceil().
UPDATE sessions SET suspected = 1,
  expiresAt = min(expiresAt, :now + CAST(graceMs AS INTEGER) + (graceMs > CAST(graceMs AS INTEGER)))
WHERE queue = :queue AND presence = :presence AND reaped = 0 AND suspected = 0

-- part: owner-columns
-- Columns of a session that lost its locks (OwnerRow in lock.ts).
maxStalls, host, pid, name, suspected
