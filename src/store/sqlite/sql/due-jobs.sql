-- Returns delayed jobs that are due, the first one first.
SELECT
-- include: left-columns
-- include: delayed-jobs
AND dueAt <= :now ORDER BY dueAt, ord LIMIT :count + 0
