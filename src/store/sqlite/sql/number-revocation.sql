-- Returns the number of the next revocation of a session.
UPDATE sessions SET revoked = revoked + 1 WHERE queue = :queue AND id = :session RETURNING revoked
