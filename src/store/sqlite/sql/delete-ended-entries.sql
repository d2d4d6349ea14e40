-- Deletes some entries of deduplication whose time has passed.
DELETE FROM dedup WHERE queue = :queue AND id IN
  (SELECT id FROM dedup WHERE queue = :queue AND until IS NOT NULL AND until <= :now LIMIT :count + 0)
