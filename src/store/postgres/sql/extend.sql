-- Extends locks of jobs. An extension needs the current token.
-- _alone: true for a lock that leaves its session: it becomes a timed lock. Callers leave it out if that is true for none.
-- Called by: lock.ts.
-- States: 3 active.
CREATE FUNCTION extend(
  _name text, _ids text[], _owners text[], _fences bigint[], _durations float8[], _alone boolean[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _reply text;
BEGIN
  -- include: lock-jobs
  WITH o AS MATERIALIZED (
    SELECT * FROM (
      SELECT DISTINCT ON (id, owner, fence) * FROM unnest(_ids, _owners, _fences, _durations) WITH ORDINALITY e(id, owner, fence, ms, n)
      ORDER BY id, owner, fence, n DESC
    ) e, LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = e.id AND state + 0 = 3 OFFSET 0) found
    WHERE e.id = ANY (_locked)
  )
  UPDATE jobs j SET ends_at = ceil(_clock + o.ms), timed = timed OR _alone IS NOT NULL AND EXISTS (
    SELECT FROM unnest(_ids, _owners, _fences, _alone) e(id, owner, fence, leaves)
    WHERE leaves AND (e.id, e.owner, e.fence) = (o.id, o.owner, o.fence)
  )
  FROM o WHERE j.ctid = o.at AND j.session = o.owner AND j.fence = o.fence;
  SELECT json_agg(
    CASE WHEN j.id IS NULL THEN 'missing' WHEN j.session IS DISTINCT FROM o.owner OR j.fence IS DISTINCT FROM o.fence THEN 'lost'
      WHEN j.state = 3 THEN 'done' ELSE 'finished' END
    ORDER BY o.n
  )
  INTO _reply FROM unnest(_ids, _owners, _fences) WITH ORDINALITY o(id, owner, fence, n)
  LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
    ON o.id = ANY (_locked);
  RETURN _reply;
END
$body$;
