-- Returns the number of the next notice of a session.
UPDATE sessions SET revoked = revoked + 1 WHERE queue = :queue AND id = :session RETURNING revoked
