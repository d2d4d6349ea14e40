-- Sets _lanes: of each key, claims need to look at one job.
-- States: -1 behind, 0 keyed, 1 waiting.
SELECT array_agg(CASE WHEN key IS NULL THEN 1 WHEN nth = 1 THEN 0 ELSE -1 END ORDER BY n) INTO _lanes
FROM (
  SELECT key, n, row_number() OVER (PARTITION BY key, delay > 0 ORDER BY priority, CASE WHEN lifo THEN -n ELSE n END) AS nth
  FROM unnest(_keys, _priorities, _delays, _lifos) WITH ORDINALITY k(key, priority, delay, lifo, n)
) lanes;
