-- Cancels jobs that have not finished. Active jobs are marked, and their sessions get notices; the others fail. The caller has locked the jobs.
-- Called by: cancel-jobs.sql, cancel-listed.sql.
-- States: 3 active.
-- MARK.cancelled = 256
CREATE FUNCTION cancel_open(_queue int, _ids text[], _reason text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  WITH held AS MATERIALIZED (
    SELECT o.n, j.at FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 3 AND marks & 256 = 0 OFFSET 0) j
  ), marked AS (
    UPDATE jobs j
    SET marks = marks | 256, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object('c', _reason)
    FROM held WHERE j.ctid = held.at RETURNING held.n, j.id, j.session, j.fence
  )
  INSERT INTO revocations (queue, session, job, fence, reason, kind)
  SELECT _queue, session, id, fence, _reason, 'cancelled' FROM marked ORDER BY n;
  PERFORM fail_open(_queue, clock_ms(), _ids, _reason);
END
$body$;
