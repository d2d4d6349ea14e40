-- Returns delayed jobs, the oldest first.
SELECT
-- include: left-columns
-- include: delayed-jobs
-- include: older
ORDER BY job LIMIT :count + 0
