-- Open sessions that are not suspected.
FROM sessions WHERE queue = :queue AND reaped = 0 AND suspected = 0
