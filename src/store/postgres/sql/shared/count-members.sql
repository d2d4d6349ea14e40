-- Counts the jobs of groups that were taken by id in their groups.
-- States: 3 active.
-- MARK.key = 1
PERFORM write_turns(_queue, _clock, array_agg(key), array_agg(jobs))
FROM (
  SELECT j.key, count(*)::int AS jobs FROM unnest(_chosen) o(id),
    LATERAL (
      SELECT extras::json ->> 'g' AS key FROM jobs
      WHERE queue = _queue AND id = o.id AND state + 0 = 3 AND marks & 1 > 0 OFFSET 0
    ) j
  GROUP BY j.key
) taken;
