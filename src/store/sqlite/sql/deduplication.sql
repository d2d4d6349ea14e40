-- Deduplication: the entries that name the owners of deduplication ids.

-- name: delete-ended-entries
-- Deletes some entries of deduplication whose time has passed.
DELETE FROM dedup WHERE queue = :queue AND id IN
  (SELECT id FROM dedup WHERE queue = :queue AND until IS NOT NULL AND until <= :now LIMIT :count + 0)

-- name: delete-entries
-- Deletes some entries of deduplication of a queue.
DELETE FROM dedup WHERE queue = :queue AND id IN (SELECT id FROM dedup WHERE queue = :queue LIMIT :count + 0)

-- name: delete-entry
-- Deletes an entry of deduplication.
DELETE FROM dedup WHERE queue = :queue AND id = :id

-- name: delete-owned-entry
-- Deletes an entry of deduplication if a job owns it.
DELETE FROM dedup WHERE queue = :queue AND id = :id AND job = :owner

-- name: find-entry
-- Finds the entry of a deduplication id.
SELECT job, until, draft FROM dedup WHERE queue = :queue AND id = :id

-- name: job-open
-- Returns a row if a job exists and has not finished.
-- States: 4 completed, 5 failed.
SELECT 1 FROM jobs WHERE queue = :queue AND id = :id AND state NOT IN (4, 5)

-- name: set-entry
-- Writes an entry of deduplication.
INSERT OR REPLACE INTO dedup (queue, id, job, until, draft) VALUES (:queue, :id, :owner, :until, :draft)
