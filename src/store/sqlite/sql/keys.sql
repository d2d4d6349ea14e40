-- Lock keys: of the jobs with the same key, one at a time is active.

-- name: first-of-key
-- Returns the first job of a key in a state.
SELECT job, priority, ord FROM jobs WHERE queue = :queue AND
-- include: key
= :key AND state = :state ORDER BY priority, ord LIMIT 1
