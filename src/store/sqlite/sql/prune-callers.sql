-- Deletes the old callers of a chunk.
DELETE
-- include: old-callers
