-- Retention: removing finished jobs above the limits.

-- name: oldest-finished
-- Returns the jobs of a finished state that finished first.
SELECT
-- include: left-columns
, finishedOn
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0

-- name: oldest-times
-- Returns when the oldest jobs of a finished state finished.
SELECT finishedOn
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0

-- name: trim-plain
-- Deletes those of the oldest jobs of a finished state whose removal concerns no other row: they have neither marks nor logs.
DELETE FROM jobs WHERE job IN (SELECT job
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0) AND marks = 0 AND logNext = 0
