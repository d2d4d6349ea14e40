-- Returns delayed jobs, the one that is due first at first.
SELECT
-- include: left-columns
-- include: delayed-jobs
-- include: older
ORDER BY dueAt, ord LIMIT :count + 0
