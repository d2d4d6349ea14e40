-- Returns active jobs, the oldest first.
-- States: 3 active.
SELECT
-- include: left-columns
FROM jobs WHERE queue = :queue AND state = 3
-- include: older
ORDER BY job LIMIT :count + 0
