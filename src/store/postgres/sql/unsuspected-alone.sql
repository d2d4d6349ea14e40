-- The fast path of a suspicion check (probe.ts): most checks are for one worker.
SELECT EXISTS (
  SELECT FROM sessions WHERE queue = (SELECT queue FROM queues WHERE name = :queue) AND id = :id
    AND reaped + 0 = 0 AND NOT suspected AND expires_at > clock_ms()
)
