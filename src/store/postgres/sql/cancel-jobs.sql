-- Cancels jobs by their ids. The second mention of a job that does not run finds it failed or removed.
-- Called by: change.ts.
-- States: 3 active, 4 completed, 5 failed.
CREATE FUNCTION cancel_jobs(_name text, _ids text[], _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _open text[];
  _reply text;
BEGIN
  -- include: lock-jobs
  SELECT json_agg(
      CASE WHEN j.id IS NULL THEN 'missing' WHEN j.state + 0 = 3 OR o.nth = 1 AND j.state + 0 NOT IN (4, 5) THEN 'done' ELSE 'state' END
      ORDER BY o.n
    ), array_agg(j.id ORDER BY o.n) FILTER (WHERE o.nth = 1 AND j.state + 0 NOT IN (4, 5))
  INTO _reply, _open
  FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN LATERAL (SELECT id, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON o.id = ANY (_locked);
  IF _open IS NOT NULL THEN PERFORM cancel_open(_queue, _open, _reason); END IF;
  RETURN _reply;
END
$body$;
