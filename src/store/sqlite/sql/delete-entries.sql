-- Deletes some entries of deduplication of a queue.
DELETE FROM dedup WHERE queue = :queue AND id IN (SELECT id FROM dedup WHERE queue = :queue LIMIT :count + 0)
