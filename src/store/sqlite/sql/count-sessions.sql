-- Counts the sessions of a queue.
SELECT count(*) FROM sessions WHERE queue = :queue AND reaped < 2
