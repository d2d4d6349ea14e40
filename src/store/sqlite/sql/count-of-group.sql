-- Counts jobs of a group in one state, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: of-group
LIMIT :count + 0)
