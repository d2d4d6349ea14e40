-- Returns the lock of a job with its owner.
-- States: 3 active.
SELECT session, fence, processedOn, endsAt, timed, host, pid, sessions.name, instance, expiresAt, reaped
FROM jobs JOIN sessions ON sessions.queue = jobs.queue AND sessions.id = jobs.session
WHERE jobs.queue = :queue AND jobs.id = :id AND state = 3
