-- Finds the entry of a deduplication id.
SELECT job, until, draft FROM dedup WHERE queue = :queue AND id = :id
