-- Number of jobs that each session holds.
-- States: 3 active.
(SELECT count(*) FROM jobs WHERE jobs.queue = sessions.queue AND state = 3 AND session = sessions.id)
