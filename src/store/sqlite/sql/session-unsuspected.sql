-- Returns a row if a session is alive and not suspected.
SELECT 1
-- include: unsuspected
AND id = :session AND expiresAt > :now
