-- Writes an entry of deduplication.
INSERT OR REPLACE INTO dedup (queue, id, job, until, draft) VALUES (:queue, :id, :owner, :until, :draft)
