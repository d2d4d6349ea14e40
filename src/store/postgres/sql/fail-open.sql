-- Fails those of the jobs that are neither active nor finished, in their order. They send no letters. The caller has locked the jobs.
-- Called by: cancel-open.sql.
-- States: 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.doomed = 64
CREATE FUNCTION fail_open(_queue int, _clock float8, _ids text[], _reason text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT o.n, j.* FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (
        SELECT ctid AS at, greatest(state, 1) AS before, CASE WHEN state + 0 BETWEEN -1 AND 1 THEN lock_key END AS key FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND state + 0 NOT IN (3, 4, 5) OFFSET 0
      ) j
  ), moved AS (
    UPDATE jobs j
    SET state = 5, ord = _base + h.n, delay = 0, due_at = NULL, finished_on = floor(_clock), failed_reason = _reason,
      lock_key = CASE WHEN marks & 1 > 0 THEN NULL ELSE lock_key END, marks = marks & ~64,
      extras = CASE WHEN marks & 64 > 0 THEN NULLIF((extras::jsonb - 'x')::text, '{}') ELSE extras END
    FROM held h WHERE j.ctid = h.at
    RETURNING h.n, h.before, h.key, j.id, j.priority, j.marks, j.extras,
      CASE WHEN j.marks & 2 > 0 THEN kin_of(j.id, j.extras, j.state, NULL, j.failed_reason) END AS kin
  )
  SELECT array_agg(id) AS failed, array_agg((ARRAY['waiting', 'delayed', NULL, NULL, NULL, 'waiting-children'])[before]) AS states,
    count(*) FILTER (WHERE before = 1 AND priority = 0) AS waiting, count(*) FILTER (WHERE before = 1 AND priority > 0) AS prioritized,
    count(*) FILTER (WHERE before = 2) AS delayed, nullif(count(*) FILTER (WHERE before = 6), 0) AS parents,
    array_agg(key) FILTER (WHERE key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE marks > 0) AS marked,
    array_agg(extras) FILTER (WHERE marks > 0) AS extras, json_agg(kin) FILTER (WHERE kin IS NOT NULL) AS kin
  INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.failed IS NULL THEN RETURN; END IF;
  _change.waiting := -_sum.waiting;
  _change.prioritized := -_sum.prioritized;
  _change.delayed := -_sum.delayed;
  _change.parents := -_sum.parents;
  _change.failed := cardinality(_sum.failed);
  _change.events := cardinality(_sum.failed);
  _change.body := event('failed', _sum.failed, json_build_object('failedReason', _reason, 'prev', _sum.states));
  IF _sum.kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _sum.kin, false); END IF;
  -- include: keep-failed
  _change := leave(_queue, _clock, _sum.keys, NULL, _sum.marked, _sum.extras, false, _change);
  -- include: note
END
$body$;
