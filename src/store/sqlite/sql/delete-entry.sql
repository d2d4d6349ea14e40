-- Deletes an entry of deduplication.
DELETE FROM dedup WHERE queue = :queue AND id = :id
