-- Counts jobs behind another job of their key, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: behind-of-priority
LIMIT :count + 0)
