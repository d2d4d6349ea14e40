-- Lists all groups that are not idle.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND place > 0
