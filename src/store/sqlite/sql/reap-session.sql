-- Ends a session.
UPDATE sessions SET reaped = :reaped WHERE queue = :queue AND id = :session
