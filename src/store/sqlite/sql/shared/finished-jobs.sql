-- Jobs of one finished state, by the index of all finished jobs.
-- States: 4 completed.
FROM jobs WHERE queue = :queue AND state >= 4 AND state = :state
