-- Locks the session and looks whether the fast path applies. If not, it settles by the ordinary path.
SELECT
  -- include: plain-look
  , CASE WHEN q.metric_points IS NOT NULL THEN _now / 60000 END
INTO _head, _left, _due, _undone, _plain, _minute
FROM sessions s, queues q,
  -- include: journal-sums
WHERE s.queue = _queue AND s.id = _session AND
  -- include: undoubted
  AND q.queue = _queue FOR KEY SHARE OF s;
IF _plain IS NOT TRUE OR _due <= _now THEN
  UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
  -- include: settle-in-full
END IF;
