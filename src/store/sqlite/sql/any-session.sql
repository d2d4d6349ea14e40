-- Finds out whether a session of the queue is open.
SELECT 1 FROM sessions WHERE queue = :queue AND reaped = 0 LIMIT 1
