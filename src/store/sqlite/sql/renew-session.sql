-- Renews a session. A renewal writes only this, whatever the session holds. The duration is rounded up: the SQLite of Deno has no
-- ceil().
UPDATE sessions SET expiresAt = :now + CAST(durationMs AS INTEGER) + (durationMs > CAST(durationMs AS INTEGER)),
  renewals = renewals + 1, suspected = 0
WHERE queue = :queue AND id = :session AND reaped = 0 RETURNING revoked
