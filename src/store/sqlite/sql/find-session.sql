-- Finds a session as the owner of locks.
SELECT
-- include: owner-columns
, reaped FROM sessions WHERE queue = :queue AND id = :session
