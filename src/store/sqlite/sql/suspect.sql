-- Suspects the sessions of a dead process. The grace is rounded up: the SQLite of Deno has no ceil().
UPDATE sessions SET suspected = 1,
  expiresAt = min(expiresAt, :now + CAST(graceMs AS INTEGER) + (graceMs > CAST(graceMs AS INTEGER)))
WHERE queue = :queue AND presence = :presence AND reaped = 0 AND suspected = 0
