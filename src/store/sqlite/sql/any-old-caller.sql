-- Returns a row if a chunk has an old caller.
SELECT 1
-- include: old-callers
LIMIT 1
