-- Applies the outcomes that are not in _done or _refused: moves the jobs, or deletes those that are not kept. Returns a row for each kind of
-- outcome. Jobs with parents, children, steps or a letter are deleted after their messages were sent (send-ends.sql).
-- States: 3 active.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.parent = 4
-- MARK.steps = 32
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
WITH outcomes AS (
  SELECT DISTINCT ON (id, owner, fence) * FROM unnest(
    _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages
  ) WITH ORDINALITY o(kind, id, owner, fence, said, stack, delay, lifo, keep_count, keep_age, n)
  WHERE (_done IS NULL OR n <> ALL (_done)) AND (_refused IS NULL OR n <> ALL (_refused)) ORDER BY id, owner, fence, n
), o AS MATERIALIZED (
  -- Looked up and locked one by one, in the order of the ids: the next statement writes in another order, and so waits for no
  -- transaction.
  -- Writing at once without this would take 4 % less for 100 jobs, but then the planner may begin with all jobs of the queue.
  SELECT * FROM outcomes o,
    LATERAL (
      SELECT ctid AS at FROM jobs j
      WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence FOR UPDATE
    ) held
), moved AS (
  UPDATE jobs j
  SET
    -- include: moved
  FROM o
  WHERE j.ctid = o.at AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence
    AND (o.keep_count IS DISTINCT FROM 0 OR j.marks & (2 | 4 | 32 | 128) > 0) AND
    -- include: allowed
  RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made, false AS logged,
    j.lock_key, j.marks, j.extras
), gone AS (
  DELETE FROM jobs j
  USING o WHERE j.ctid = o.at AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence AND o.keep_count = 0
    AND j.marks & (2 | 4 | 32 | 128) = 0 AND
    -- include: allowed
  RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made + 1, j.log_next > 0,
    j.lock_key, j.marks, j.extras
)
SELECT kind, count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
  count(*) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS kept, min(NULLIF(keep_count, 0)) AS most,
  min(keep_age) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS age, array_agg(n) AS ns, array_agg(id) AS ids,
  array_agg(keep_count IS NOT DISTINCT FROM 0) AS removed, array_agg(said) AS said, array_agg(delay) AS delays,
  array_agg(CASE WHEN _early[n] IS NOT TRUE THEN attempts_made END) AS attempts,
  array_agg(id) FILTER (WHERE logged) AS logged, array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND marks & 1 = 0) AS keys,
  array_agg(extras::json ->> 'g') FILTER (WHERE marks & 1 > 0) AS groups,
  array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND marks & 1 > 0) AS entered,
  array_agg(id) FILTER (WHERE marks > 1 AND kind IN ('completed', 'failed')) AS marked,
  array_agg(id) FILTER (WHERE marks & (2 | 4 | 32 | 64 | 128 | 256) > 0 AND kind IN ('completed', 'failed')) AS kin,
  array_agg(keep_count IS NOT DISTINCT FROM 0)
    FILTER (WHERE marks & (2 | 4 | 32 | 64 | 128 | 256) > 0 AND kind IN ('completed', 'failed')) AS kin_gone,
  array_agg(extras) FILTER (WHERE marks > 1 AND kind IN ('completed', 'failed')) AS extras
FROM (SELECT * FROM moved UNION ALL SELECT * FROM gone ORDER BY n) done GROUP BY kind
