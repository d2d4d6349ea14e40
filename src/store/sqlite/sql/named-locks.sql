-- Named locks, and the waiters for them.

-- name: any-named
-- Returns a row if a session has a named lock or a place in line.
SELECT 1 WHERE EXISTS (SELECT 1 FROM named WHERE queue = :queue AND session = :session)
  OR EXISTS (SELECT 1 FROM places WHERE queue = :queue AND session = :session)

-- name: count-ahead
-- Counts the lock waiters between two places.
SELECT count(*)
-- Places in the line of a named lock. A place counts while it is kept and its session is alive. An expired session may still be
-- renewed, and then its place counts again.
FROM places JOIN sessions ON sessions.queue = places.queue AND sessions.id = places.session
WHERE places.queue = :queue AND places.name = :name AND keptUntil > :now AND sessions.reaped = 0 AND sessions.expiresAt > :now
AND place >= :from AND place < :place

-- name: drop-named-lock
-- Releases a named lock.
DELETE FROM named WHERE queue = :queue AND name = :name AND token = :token

-- name: end-session
-- Ends a session unless it has ended.
UPDATE sessions SET reaped = 1 WHERE queue = :queue AND id = :session AND reaped = 0

-- name: enter-line
-- Puts a lock waiter at the end of the line.
INSERT INTO places (queue, name, token, session, keptUntil) VALUES (:queue, :name, :token, :session, :keptUntil)

-- name: find-named-lock
-- Returns the holder of a named lock (HoldRow in named-lock.ts).
SELECT token, fence, named.since, session, host, pid, sessions.name, instance, expiresAt, reaped
FROM named JOIN sessions ON sessions.queue = named.queue AND sessions.id = named.session
WHERE named.queue = :queue AND named.name = :name

-- name: find-place
-- Returns the place of a lock waiter in line.
SELECT place FROM places WHERE queue = :queue AND name = :name AND token = :token AND keptUntil > :now

-- name: free-named-locks
-- Releases some named locks of a session.
DELETE FROM named WHERE queue = :queue AND name IN
  (SELECT name FROM named WHERE queue = :queue AND session = :session LIMIT :count + 0)

-- name: delete-places
-- Deletes some places in line of a session.
DELETE FROM places WHERE queue = :queue AND place IN
  (SELECT place FROM places WHERE queue = :queue AND session = :session LIMIT :count + 0)

-- name: keep-place
-- Keeps a place for longer.
UPDATE places SET keptUntil = :keptUntil WHERE place = :place

-- name: lapse-places
-- Deletes the places that are no longer kept.
DELETE FROM places WHERE queue = :queue AND name = :name AND keptUntil <= :now

-- name: leave-line
-- Takes a lock waiter out of the line.
DELETE FROM places WHERE queue = :queue AND name = :name AND token = :token

-- name: take-named-lock
-- Grants a named lock.
INSERT OR REPLACE INTO named (queue, name, token, session, fence, since) VALUES (:queue, :name, :token, :session, :fence, :now)
