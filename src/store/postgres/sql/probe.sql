-- Suspicion has two steps: the first marks the session as suspected, the second sets when it ends. Between them lies a commit that
-- every process can see. So if a process finds its session unsuspected, the session lasts at least for its grace from then on, however
-- long that commit took.
-- The probe tries a shared lock until the end of this call: it blocks neither other probes nor an owner that still holds its lock.
-- Called by: probe.ts.
-- SETTLING_MS = 5000: after a server has started (or another one took over), no session is suspected for this many ms: living processes
--   must reconnect first.
-- ADVISORY.presence = 1214673780
-- SUSPECTED_AT_ONCE = 500: how many processes one probe suspects: each takes an entry in the server's lock table for a moment.
CREATE FUNCTION probe(_name text, _hinted boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int;
  _undone boolean;
  _vouched int[];
  _looking bigint;
  _gone int[];
  _fresh int := 0;
BEGIN
  SELECT q.queue,
    -- include: any-undone
  INTO _queue, _undone FROM queues q WHERE name = _name;
  IF NOT _hinted THEN
    RETURN json_build_array((SELECT count(*) FROM sessions WHERE queue = _queue AND reaped < 2), NULL, 0, _undone);
  END IF;
  SELECT array_agg(vouched), coalesce(sum(sessions), 0) INTO _vouched, _looking
  FROM (
    SELECT vouched, count(*) AS sessions FROM sessions
    WHERE queue = _queue AND reaped = 0 AND NOT suspected AND vouched IS NOT NULL GROUP BY vouched
  ) p;
  IF (SELECT served_by FROM holdfast_schema) IS DISTINCT FROM pg_postmaster_start_time() THEN
    UPDATE holdfast_schema
    SET served_by = pg_postmaster_start_time(), served_since = CASE WHEN served_by IS NULL THEN 0 ELSE _clock END
    WHERE served_by IS DISTINCT FROM pg_postmaster_start_time();
  END IF;
  IF (SELECT served_since FROM holdfast_schema) > _clock - 5000 THEN RETURN json_build_array(_looking, NULL, 0, _undone); END IF;
  PERFORM shorten_suspected(_queue);
  SELECT array_agg(vouched) INTO _gone FROM (
    SELECT vouched FROM unnest(_vouched) vouched WHERE pg_try_advisory_xact_lock_shared(1214673780, vouched) LIMIT 500
  ) p;
  IF _gone IS NOT NULL THEN
    -- One that is being renewed at this moment is no suspect.
    UPDATE sessions SET suspected = true
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM sessions
        WHERE queue = _queue AND reaped = 0 AND NOT suspected AND vouched IS NOT NULL
          AND vouched = ANY (_gone) FOR NO KEY UPDATE SKIP LOCKED
      )
    );
    GET DIAGNOSTICS _fresh = ROW_COUNT;
  END IF;
  RETURN json_build_array(
    _looking, (SELECT min(expires_at) FROM sessions WHERE queue = _queue AND reaped = 0 AND suspected) - floor(_clock), _fresh,
    _undone
  );
END
$body$;
