-- Places in the line of a named lock. A place counts while it is kept and its session is alive. An expired session may still be
-- renewed, and then its place counts again.
FROM places JOIN sessions ON sessions.queue = places.queue AND sessions.id = places.session
WHERE places.queue = :queue AND places.name = :name AND keptUntil > :now AND sessions.reaped = 0 AND sessions.expiresAt > :now
