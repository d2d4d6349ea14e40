-- Finds a group.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key = :key
