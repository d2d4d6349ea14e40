-- Returns ended sessions that hold nothing any more.
-- States: 3 active.
SELECT queue, id FROM sessions WHERE reaped = 2
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = sessions.queue AND state = 3 AND session = sessions.id)
