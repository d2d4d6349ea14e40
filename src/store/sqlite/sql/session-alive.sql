-- Returns a row if a session is alive.
SELECT 1 FROM sessions WHERE queue = :queue AND id = :session AND reaped = 0 AND expiresAt > :now
