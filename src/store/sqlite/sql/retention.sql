-- Retention: removing finished jobs above the limits.

-- name: oldest-finished
-- Returns the jobs of a finished state that finished first.
SELECT
-- include: left-columns
, finishedOn
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0
