-- The fast path of a suspicion check (probe.ts): most checks are for one worker. Returns whether the session is not suspected, and whether it
-- has notices.
SELECT EXISTS (
    SELECT FROM sessions s WHERE s.queue = q.queue AND s.id = :id AND s.reaped + 0 = 0 AND NOT s.suspected AND s.expires_at > clock_ms()
  ), EXISTS (SELECT FROM revocations v WHERE v.queue = q.queue AND v.session = :id)
FROM queues q WHERE q.name = :queue
