-- Deletes an entry of deduplication if a job owns it.
DELETE FROM dedup WHERE queue = :queue AND id = :id AND job = :owner
