-- Returns the holder of a named lock (HoldRow in named-lock.ts).
SELECT token, fence, named.since, session, host, pid, sessions.name, instance, expiresAt, reaped
FROM named JOIN sessions ON sessions.queue = named.queue AND sessions.id = named.session
WHERE named.queue = :queue AND named.name = :name
