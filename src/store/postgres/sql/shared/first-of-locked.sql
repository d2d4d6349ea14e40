-- Sets _found: of the keys in _locked the first job of each free one, and the taken ones.
-- States: -2 grouped, 0 keyed, 3 active.
SELECT array_agg(j.id) FILTER (WHERE NOT taken) AS ids, array_agg(key) FILTER (WHERE taken) AS taken INTO _found
FROM (
  SELECT key,
    EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = key AND lock_key IS NOT NULL AND state = 3) AS taken
  FROM unnest(_locked) key
) o,
  LATERAL (
    SELECT * FROM (
      SELECT id FROM jobs
      WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
        AND priority = 0 AND ord < 0
      ORDER BY priority, ord LIMIT 1
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT id FROM jobs
      WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
        AND (priority, ord) >= (0, _head_keyed)
      ORDER BY priority, ord LIMIT 1
    ) s LIMIT 1
  ) j;
