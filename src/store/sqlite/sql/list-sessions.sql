-- Lists the open sessions.
SELECT id, host, pid, name, instance, slots, durationMs, since, renewals, expiresAt, suspected,
-- include: locks-of-session
FROM sessions WHERE queue = :queue AND reaped = 0 ORDER BY since, id
