-- Decides what becomes of a dead session: it stays while it holds something that a later call ends, or a lock with an end of its own.
-- States: 3 active.
-- BITE = 25
IF _left <= 0 AND _most = 25 THEN
  -- Whether there is more is for the next call to find out.
  UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
ELSIF (
    SELECT fence FROM jobs WHERE queue = _queue AND state = 3 AND session = _session.id AND ends_at IS NULL
    ORDER BY fence LIMIT 1
  ) IS NOT NULL OR (
    (SELECT name FROM named WHERE queue = _queue AND session = _session.id ORDER BY name LIMIT 1) IS NOT NULL
      OR (SELECT place FROM lock_places WHERE queue = _queue AND session = _session.id ORDER BY place LIMIT 1) IS NOT NULL
  ) THEN
  UPDATE sessions SET reaped = 1 WHERE queue = _queue AND id = _session.id;
ELSIF (
    SELECT fence FROM jobs WHERE queue = _queue AND state = 3 AND session = _session.id AND true ORDER BY fence LIMIT 1
  ) IS NOT NULL THEN
  UPDATE sessions SET reaped = 2 WHERE queue = _queue AND id = _session.id;
ELSE
  PERFORM forget_session(_queue, _session.id);
END IF;
