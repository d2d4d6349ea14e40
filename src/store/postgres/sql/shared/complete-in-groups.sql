-- The same as complete.sql for queues with groups. Jobs of groups are completed too. Sets _groups: the groups of these.
-- States: 3 active.
-- MARK.key = 1
_base := nextval('places');
WITH outcomes AS (
  -- include: outcomes-by-id
), o AS MATERIALIZED (
  SELECT o.*, held.at FROM outcomes o,
    LATERAL (
      SELECT ctid AS at FROM jobs j
      WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND j.marks <= 1
        AND j.lock_key IS NULL
      OFFSET 0
    ) held
), moved AS (
  UPDATE jobs j
  SET ord = _base + o.n, returnvalue = o.said,
    -- include: completed
  FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence
    AND j.marks <= 1 AND j.lock_key IS NULL
  RETURNING o.n, CASE WHEN j.marks = 1 THEN j.extras::json ->> 'g' END AS key
)
SELECT array_agg(n ORDER BY n), count(*), array_agg(key) FILTER (WHERE key IS NOT NULL) INTO _done, _finished, _groups FROM moved;
