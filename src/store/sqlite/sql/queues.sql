-- Queues: their rows, counters and rules.

-- name: create-queue
-- Creates the row of a queue.
INSERT INTO queues (name) VALUES (:name)

-- name: read-queue
-- Reads the row of a queue: its number, COLUMNS of queue-state.ts, and its rules.
SELECT queue, version, touchedAt, paused, maxActive, keyed, limitedUntil, windowEnds, windowUsed, lastId, front, back,
  fence, firstEvent, lastEvent, waiting, prioritized, delayed, active, completed, failed, scheduled, parents, rules
FROM queues WHERE name = :name

-- name: save-queue
-- Writes the row of a queue.
UPDATE queues SET version = :version, touchedAt = :touchedAt, paused = :paused, maxActive = :maxActive, keyed = :keyed,
  limitedUntil = :limitedUntil, windowEnds = :windowEnds, windowUsed = :windowUsed,
  lastId = :lastId, front = :front, back = :back, fence = :fence, firstEvent = :firstEvent, lastEvent = :lastEvent,
  waiting = :waiting, prioritized = :prioritized, delayed = :delayed, active = :active, completed = :completed,
  failed = :failed, scheduled = :scheduled, parents = :parents
WHERE queue = :queue

-- name: set-rules
-- Writes the rules of a queue.
UPDATE queues SET rules = :rules WHERE queue = :queue

-- name: list-queues
-- Lists the names of queues.
SELECT name FROM queues WHERE name > :after ORDER BY name LIMIT :count + 0

-- name: queue-version
-- Returns a number that grows with every write that watchers must see.
SELECT version FROM queues WHERE name = :name
