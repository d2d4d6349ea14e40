-- Events: their log, and its trimming.

-- name: bytes-of-events
-- Returns the bytes of rows of events from the one that contains an event on.
SELECT octet_length(body)
-- include: events-from

-- name: cut-events
-- Cuts the first events off a row.
UPDATE events SET first = :first, body = :body WHERE queue = :queue AND first = :before

-- name: read-events
-- Reads rows of events from the one that contains an event on.
SELECT first, body
-- include: events-from

-- name: trim-events
-- Deletes the rows of events up to an event.
DELETE FROM events WHERE queue = :queue AND first <= :last AND last <= :last

-- name: first-event
-- Returns the first event of a queue.
SELECT min(first) FROM events WHERE queue = :queue

-- name: list-event-bytes
-- Lists all rows of events with their bytes.
SELECT first, last, octet_length(body) FROM events WHERE queue = :queue ORDER BY first

-- name: read-event-row
-- Reads a row of events.
SELECT body FROM events WHERE queue = :queue AND first = :first

-- name: rewrite-event-row
-- Rewrites a row of events.
UPDATE events SET body = :body WHERE queue = :queue AND first = :first

-- name: write-events
-- Writes a row of events.
INSERT INTO events (queue, first, last, body) VALUES (:queue, :first, :last, :body)

-- part: events-from
-- Rows of events from the one that contains an event on. That row begins at or before the event.
FROM events
WHERE queue = :queue AND first >= ifnull((SELECT max(first) FROM events WHERE queue = :queue AND first <= :event), 0)
ORDER BY first LIMIT :count + 0
