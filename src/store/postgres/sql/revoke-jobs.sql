-- Takes locks of jobs away. The jobs go back without counting a stall.
-- Called by: change.ts, revoke.sql.
-- States: 3 active.
CREATE FUNCTION revoke_jobs(_name text, _ids text[], _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _held record;
  _reply text;
BEGIN
  -- include: lock-jobs
  SELECT array_agg(id) AS ids, array_agg(session) AS sessions, array_agg(fence) AS fences INTO _held
  FROM (
    SELECT * FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      LATERAL (SELECT session, fence FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 3 OFFSET 0) j
    WHERE o.id = ANY (_locked) ORDER BY n
  ) held;
  -- The second mention of an active job finds it waiting.
  SELECT json_agg(CASE WHEN j.id IS NULL THEN 'missing' WHEN o.nth = 1 AND j.state = 3 THEN 'done' ELSE 'state' END ORDER BY o.n)
  INTO _reply
  FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN LATERAL (SELECT id, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
    ON o.id = ANY (_locked);
  IF _held.ids IS NOT NULL THEN
    INSERT INTO revocations (queue, session, job, fence, reason)
    SELECT _queue, session, id, fence, _reason FROM unnest(_held.sessions, _held.ids, _held.fences) h(session, id, fence);
    PERFORM hand_back(_queue, clock_ms(), _held.ids, NULL);
  END IF;
  RETURN _reply;
END
$body$;
