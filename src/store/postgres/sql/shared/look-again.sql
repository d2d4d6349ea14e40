-- Looks again at a session that has expired since, or came to hold the lock since. A transaction that has its row at this moment may be
-- about to renew it.
PERFORM FROM sessions WHERE queue = _queue AND id = _hold.session FOR UPDATE SKIP LOCKED;
IF FOUND THEN
  SELECT s.expires_at, s.reaped + 0 = 0 AND s.expires_at > _now INTO _hold.expires_at, _hold.lives FROM sessions s
  WHERE queue = _queue AND id = _hold.session;
ELSE
  _hold.lives := EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _hold.session);
END IF;
