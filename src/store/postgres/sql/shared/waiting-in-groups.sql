-- Locks as many jobs of each group as it has turns.
-- States: -2 grouped, 0 keyed.
SELECT j.at, j.size, row_number() OVER (PARTITION BY m.n ORDER BY j.priority, j.ord) AS round, m.turn, m.key COLLATE "C" AS key
FROM unnest(_turn._keys, _turn._took, _turn._begins) WITH ORDINALITY m(key, took, turn, n),
  LATERAL (
    SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
    WHERE queue = _queue AND lock_key = m.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
      AND (xmax = 0 OR untouched(xmax))
    ORDER BY priority, ord LIMIT m.took FOR UPDATE SKIP LOCKED
  ) j
