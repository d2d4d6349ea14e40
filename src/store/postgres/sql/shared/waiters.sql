-- The lock waiters of a name in their order. A place counts while it is kept and its session lives. An expired session may still be
-- renewed, and then its places count again.
SELECT * FROM (SELECT * FROM lock_places WHERE queue = _queue AND name = _one.name ORDER BY place OFFSET 0) p
JOIN LATERAL (SELECT * FROM sessions s WHERE s.queue = _queue AND s.id = p.session OFFSET 0) s ON true
WHERE p.kept_until > _now AND s.reaped + 0 = 0 AND s.expires_at > _now
