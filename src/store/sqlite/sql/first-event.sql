-- Returns the first event of a queue.
SELECT min(first) FROM events WHERE queue = :queue
