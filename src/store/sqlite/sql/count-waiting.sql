-- Counts jobs in the claim order, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: waiting-of-priority
LIMIT :count + 0)
