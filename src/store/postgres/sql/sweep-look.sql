-- The fast path of a sweep (sweep.ts): most sweeps find nothing, in one statement and without a lock. Returns the queue, whether a lock
-- has ended, whether a session is due for a check, whether that session was renewed, and whether upkeep is due.
SELECT queue, ended, looked IS NOT NULL, looked > _now, upkeep FROM (SELECT floor(clock_ms())::bigint AS _now OFFSET 0) clock, LATERAL (
  -- include: look
  FROM queues q WHERE name = :queue OFFSET 0
) look
