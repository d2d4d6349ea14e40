-- The fast path for renewing one session (session.ts): a worker process has one renewer, and most processes have one worker. Returns the
-- queue, and whether the session has notices. Returns no row if the session is not open.
UPDATE sessions s SET
  -- include: renewed
  slots = coalesce(:slots::float8, s.slots)
WHERE s.queue = (SELECT queue FROM queues WHERE name = :queue) AND s.id = :id AND s.reaped + 0 = 0
RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id)
