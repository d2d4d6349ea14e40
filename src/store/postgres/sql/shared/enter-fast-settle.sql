-- Locks the caller and writes its reply in one go, or settles by the ordinary path. Callers, sessions, jobs: in the order that all
-- transactions use. Sets _queue.
UPDATE callers c SET seq = _seq, used_at = _now, reply = repeat('d', _many)
WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _session AND c.seq < _seq RETURNING c.queue INTO _queue;
IF NOT FOUND THEN
  -- include: settle-in-full
END IF;
