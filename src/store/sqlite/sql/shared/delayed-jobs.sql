-- Delayed jobs.
-- States: 2 delayed.
FROM jobs WHERE queue = :queue AND state = 2
