-- Jobs that a session holds.
-- States: 3 active.
FROM jobs WHERE queue = :queue AND state = 3 AND session = :session
