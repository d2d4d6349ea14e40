-- Ends locks whose own expiry has passed, and dead sessions.
-- `_any_ended`, `_any_renewed`: the findings of look.sql, so that the server does not even plan the other branches.
-- Called by: rehearse-reap.sql, sweep-reap.sql, sweep.sql.
-- BITE = 25: how many locks one call ends, or fewer if its limit says so. The first call on a connection takes longer, because the server
--   plans its statements: with 100 locks, and every branch of a sweep in one call, it took 10 ms. See rehearse-reap.sql.
-- LOOKED_AT_ONCE = 200: how many sessions that were renewed since their last check one call moves on: about 2 ms.
CREATE FUNCTION reap(
  _queue int, _clock float8, _limit int, _any_ended boolean, _any_renewed boolean
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _most int := least(_limit, 25);
  _left int := _most;
  _seen text[] := '{}';
  _session sessions;
  _dead record;
  _stalled text[] := '{}';
  _failed text[] := '{}';
  _stalled_by text[] := '{}';
  _failed_by text[] := '{}';
  _renewed int := 0;
  _more boolean := true;
BEGIN
  IF _any_ended THEN
    SELECT * INTO _dead FROM sweep_ended(_queue, _clock, _left);
    _stalled := _stalled || _dead.stalled;
    _failed := _failed || _dead.failed;
    _stalled_by := _stalled_by || _dead.stalled_by;
    _failed_by := _failed_by || _dead.failed_by;
    _left := _left - _dead.ended;
  END IF;
  IF _any_renewed THEN
    -- They are to be looked at when they would die now. Before the dead are looked for, who may stand behind them.
    UPDATE sessions SET look_at = expires_at
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM sessions WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at > _now
        ORDER BY look_at LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED
      )
    );
    GET DIAGNOSTICS _renewed = ROW_COUNT;
  END IF;
  WHILE _renewed < 200 AND _left > 0 AND cardinality(_seen) < _most LOOP
    SELECT * INTO _session FROM sessions
    WHERE queue = _queue AND reaped < 2 AND look_at <= _now AND expires_at <= _now AND id <> ALL (_seen)
    ORDER BY look_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    _seen := _seen || _session.id;
    -- include: reap-jobs
    IF _left > 0 THEN _left := _left - free_names(_queue, _session.id, _left); END IF;
    -- include: reaped-session
  END LOOP;
  IF _renewed < 200 THEN
    _more := _left <= 0 OR cardinality(_seen) >= _most;
    -- include: any-dead
  END IF;
  RETURN swept(_stalled, _failed, cardinality(_seen), _more, nullif(_stalled_by || _failed_by, '{}'));
END
$body$;
