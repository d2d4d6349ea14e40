-- Returns whether an open session is alive and not suspected, and whether there is a notice for it.
SELECT suspected = 0 AND expiresAt > :now,
  revoked > 0 AND EXISTS (SELECT 1 FROM revocations WHERE revocations.queue = sessions.queue AND revocations.session = sessions.id)
FROM sessions WHERE queue = :queue AND id = :session AND reaped = 0
