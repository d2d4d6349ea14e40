-- Jobs of the groups that a statement reads. shared/of-group.sql explains their key.
SELECT 1 FROM jobs WHERE jobs.queue = groups.queue AND
-- include: key
= x'ff' || key AND state
