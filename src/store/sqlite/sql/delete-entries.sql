-- Deletes all entries of deduplication of a queue.
DELETE FROM dedup WHERE queue = :queue
