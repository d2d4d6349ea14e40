-- Claims jobs: the part that claims and settles share.
-- Runs after the caller was entered and the session locked: _alive says whether the session lives, _last is its last call.
-- Called by: claim.sql, settle.sql.
-- States: 2 delayed.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION take(
  _queue int, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8,
  _window float8, _clock float8, _alive boolean, _last bigint, INOUT _change journal, OUT _taken int,
  OUT _reply text, _inline int DEFAULT 2147483647
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _look record;
  _row queues;
  _room int := 0;
  _got record;
  _jobs text;
  _due bigint;
  _left bigint;
  _soon boolean := false;
  _more boolean := false;
BEGIN
  _taken := 0;
  -- include: take-look
  _row := _look.row;
  _left := _look.waiting + _change.waiting + _change.prioritized;
  IF _look.delayed + _change.delayed > 0 THEN
    _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
  END IF;
  IF _alive AND _seq <= _last THEN
    -- include: claim-again
  ELSIF _alive AND (_ids IS NOT NULL OR NOT _row.paused) AND (_left > 0 OR _due <= _now) THEN
    IF _row.fenced_on IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
    IF _ids IS NULL AND (coalesce(_row.rate_max, _max, _row.max_active) IS NOT NULL OR _row.window_ends > _now) THEN
      SELECT * INTO _row FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
    END IF;
    IF _row.window_ends <= _now THEN _row.window_used := 0; END IF;
    IF _ids IS NOT NULL THEN
      -- include: take-by-id
    ELSIF _row.limited_until <= _now THEN
      _room := greatest(0, least(_count, coalesce(coalesce(_row.rate_max, _max) - _row.window_used, _count)));
    END IF;
  END IF;
  -- include: take-due
  IF _room > 0 THEN
    IF _row.max_active IS NOT NULL THEN
      -- include: room-under-cap
    END IF;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    -- include: take-room
  END IF;
  -- The window opens with the first claim in it, not with the first look.
  IF _taken > 0 AND (coalesce(_row.rate_max, _max) IS NOT NULL OR _row.window_ends > _now) THEN
    -- include: use-window
  END IF;
  -- include: next-rest
  _reply := claim_reply(
    _jobs, _alive, _row.paused, limited_ms(_row, coalesce(_row.rate_max, _max), _now), _due, _now,
    _left <= 0 AND coalesce(_due > _now, true), _more, _look.undone
  );
END
$body$;
