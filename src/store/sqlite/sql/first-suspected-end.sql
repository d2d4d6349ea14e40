-- Returns when the first suspected session expires.
SELECT min(expiresAt) FROM sessions WHERE queue = :queue AND reaped = 0 AND suspected = 1
