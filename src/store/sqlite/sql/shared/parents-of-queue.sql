-- Jobs that wait for children, by the index of the finished jobs.
-- States: 4 completed, 6 waiting-children.
FROM jobs WHERE queue = :queue AND state >= 4 AND state = 6
