-- Ends a session unless it has ended.
UPDATE sessions SET reaped = 1 WHERE queue = :queue AND id = :session AND reaped = 0
