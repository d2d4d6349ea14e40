-- Callers: the store remembers the last call of each.

-- name: any-old-caller
-- Returns a row if a chunk has an old caller.
SELECT 1
-- include: old-callers
LIMIT 1

-- name: end-of-callers-chunk
-- Returns the last caller of the chunk that begins after a caller.
SELECT queue, id FROM callers WHERE (queue, id) > (:fromQueue, :fromId) ORDER BY queue, id LIMIT 1 OFFSET :skipped

-- name: forget-caller
-- Deletes a caller.
DELETE FROM callers WHERE queue = :queue AND id = :caller

-- name: last-call
-- Returns the last call of a caller.
SELECT seq, reply FROM callers WHERE queue = :queue AND id = :caller

-- name: prune-callers
-- Deletes the old callers of a chunk.
DELETE
-- include: old-callers

-- name: remember-call
-- Stores the last call of a caller and its reply.
INSERT OR REPLACE INTO callers (queue, id, seq, usedAt, reply) VALUES (:queue, :caller, :seq, :now, :reply)

-- part: old-callers
-- Old callers of one chunk. A worker may repeat its last call for as long as its session is open. The scan is in table order: an
-- index on the age would find old callers at once, but every call would have to write it.
FROM callers WHERE (queue, id) > (:fromQueue, :fromId) AND (queue, id) <= (:toQueue, :toId) AND usedAt < :usedBefore
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.queue = callers.queue AND sessions.id = callers.id)
