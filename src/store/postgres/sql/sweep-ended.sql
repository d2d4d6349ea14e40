-- Ends locks whose own expiry has passed. An extended lock whose session outlived the extension lives as long as the session again.
-- Called by: reap.sql.
CREATE FUNCTION sweep_ended(
  _queue int, _clock float8, _limit int, OUT stalled text[], OUT failed text[], OUT ended int,
  OUT stalled_by text[], OUT failed_by text[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _ended record;
  _alive text[];
BEGIN
  SELECT array_agg(at) AS rows, array_agg(DISTINCT session) FILTER (WHERE NOT timed) AS sessions, count(*) AS jobs INTO _ended
  FROM (
    SELECT ctid AS at, session, timed FROM jobs
    WHERE queue = _queue AND ends_at IS NOT NULL AND ends_at <= _now AND (xmax = 0 OR untouched(xmax))
      AND (marks = 0 OR entry_free(_queue, id, extras))
    ORDER BY ends_at LIMIT _limit FOR UPDATE SKIP LOCKED
  ) locked;
  ended := _ended.jobs;
  IF ended = 0 THEN RETURN; END IF;
  -- Held as a claim holds them: one that is reaped at this moment would never look at the lock again.
  SELECT array_agg(id) INTO _alive FROM (
    SELECT id FROM sessions WHERE queue = _queue AND id = ANY (_ended.sessions) AND reaped + 0 = 0 FOR KEY SHARE SKIP LOCKED
  ) s;
  UPDATE jobs SET ends_at = NULL WHERE ctid = ANY (_ended.rows) AND NOT timed AND session = ANY (_alive);
  SELECT h.stalled, h.failed, h.stalled_by, h.failed_by INTO stalled, failed, stalled_by, failed_by
  FROM (
    SELECT array_agg(j.id ORDER BY j.ends_at) AS ids, array_agg(coalesce(s.max_stalls, 0) ORDER BY j.ends_at) AS limits,
      array_agg(loss_of(s, CASE WHEN j.timed THEN 'lock-expired' END) ORDER BY j.ends_at) AS losses
    FROM jobs j
    LEFT JOIN sessions s ON s.queue = j.queue AND s.id = j.session
    WHERE j.ctid = ANY (_ended.rows) AND j.ends_at + 0 <= _now AND (j.timed OR s.reaped IS DISTINCT FROM 0)
  ) dead, LATERAL hand_back(_queue, _clock, dead.ids, dead.limits, dead.losses) h
  WHERE dead.ids IS NOT NULL;
END
$body$;
