-- Deletes a session.
DELETE FROM sessions WHERE queue = :queue AND id = :session
