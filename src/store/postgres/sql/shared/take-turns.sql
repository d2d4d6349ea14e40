-- Takes jobs of the groups of _ring: as many of each as turns come to it if all have enough, round by round in the order of the ring. If a
-- group has fewer, the turns that it leaves come after all of these, so the claim goes on with them afterwards. In a statement after the locks
-- of the groups: a change of the limits holds them too. Sets _took, if it got too few: the groups of the jobs.
-- States: -2 grouped, 0 keyed, 3 active.
-- MARK.key = 1
WITH waiting AS (
  SELECT at, size FROM (
    SELECT j.at, j.size, row_number() OVER (PARTITION BY m.n ORDER BY j.priority, j.ord) AS round, m.n
    FROM queues q, unnest(_ring.keys, _ring.active, _ring.max_active) WITH ORDINALITY m(key, active, max_active, n),
      LATERAL (
        SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
        WHERE queue = _queue AND lock_key = m.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
          AND (xmax = 0 OR untouched(xmax))
        ORDER BY priority, ord LIMIT greatest(
          0, least(coalesce(m.max_active, q.group_max) - m.active, (_ring.asked + _ring.many - m.n) / _ring.many)
        )::bigint FOR UPDATE SKIP LOCKED
      ) j
    WHERE q.queue = _queue
  ) s
  ORDER BY round, n
)
-- include: grant
_took := NULL;
IF _taken > 0 AND _taken < _ring.asked THEN
  _took := ARRAY(
    SELECT extras::json ->> 'g' FROM jobs
    WHERE queue = _queue AND state = 3 AND session = _session AND fence > _ring.fence AND claim_seq = _seq AND marks & 1 > 0
  );
END IF;
_all := _all + _taken;
_used := _used + _bytes;
