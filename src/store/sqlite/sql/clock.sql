-- The clock of the store.

-- name: read-clock
-- Reads the clock of the last boot.
SELECT boot, offset FROM clock

-- name: set-clock
-- Writes the clock of this boot.
INSERT OR REPLACE INTO clock (only, boot, offset) VALUES (1, :boot, :offset)

-- name: last-known-time
-- Returns the latest past time that the file records.
SELECT max((SELECT ifnull(max(touchedAt), 0) FROM queues),
  (SELECT ifnull(max(expiresAt - durationMs), 0) FROM sessions))

-- name: expire-locks
-- Ends the timed locks of an earlier boot.
UPDATE jobs SET endsAt = 0 WHERE endsAt IS NOT NULL

-- name: expire-sessions
-- Ends the sessions of an earlier boot: their owners are dead.
UPDATE sessions SET expiresAt = 0 WHERE reaped < 2
