-- Returns the session that expired first.
SELECT
-- include: owner-columns
, id FROM sessions WHERE queue = :queue AND reaped < 2 AND expiresAt <= :now ORDER BY expiresAt LIMIT 1
