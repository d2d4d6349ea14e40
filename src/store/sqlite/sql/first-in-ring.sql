-- Finds the group whose turn it is.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND place = 1 ORDER BY number, key LIMIT 1
