-- Returns the sessions that share the cap, and the number of jobs that each holds.
SELECT id, slots,
-- include: locks-of-session
FROM sessions WHERE queue = :queue AND reaped = 0 AND expiresAt > :now
