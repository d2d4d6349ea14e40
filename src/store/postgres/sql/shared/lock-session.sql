-- Locks the session against closing and reaping, but not against renewal. Sets _alive.
PERFORM FROM sessions
WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now AND NOT suspected FOR KEY SHARE;
_alive := FOUND;
IF NOT _alive THEN _alive := clear_suspicion(_queue, _session, _now); END IF;
