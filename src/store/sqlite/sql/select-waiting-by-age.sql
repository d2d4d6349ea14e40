-- Returns waiting jobs, the oldest first.
SELECT
-- include: left-columns
-- include: waiting-of-priority
-- include: older
UNION ALL SELECT
-- include: left-columns
-- include: behind-of-priority
-- include: older
ORDER BY job LIMIT :count + 0
