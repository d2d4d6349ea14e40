-- Sets _more: whether a call with a small limit left something dead.
-- BITE = 25
IF _more AND _most < 25 THEN
  _more := (
    (
      SELECT ends_at FROM jobs WHERE queue = _queue AND ends_at IS NOT NULL AND ends_at <= _now ORDER BY ends_at LIMIT 1
    ) IS NOT NULL OR (
      SELECT look_at FROM sessions WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at <= _now
      ORDER BY look_at LIMIT 1
    ) IS NOT NULL
  );
END IF;
