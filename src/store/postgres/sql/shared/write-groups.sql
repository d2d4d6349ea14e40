-- Writes what a call has done to groups: the places of completed jobs (_groups) come free, and the groups of _ring, whose rows are locked, have
-- had their turns. If all jobs were found, each group has those that take-turns.sql looked for. A group that has no waiting job left goes out
-- of line. The row '' gets the number of the last turn, unless another claim is about to write it. Places in rows that other transactions hold
-- become notes, as in free-places.sql. Sets _wrote: how many groups changed their numbers, whether one may have a place that had none, and the
-- groups that were written.
-- States: -2 grouped, 0 keyed.
WITH o AS MATERIALIZED (
  SELECT key COLLATE "C" AS key, sum(took)::int AS took, sum(freed)::int AS freed, max(n) AS n FROM (
    SELECT key, CASE WHEN _taken = _ring.asked THEN (_ring.asked + _ring.many - n) / _ring.many ELSE 0 END AS took, 0 AS freed, n
    FROM unnest(_ring.keys) WITH ORDINALITY r(key, n)
    UNION ALL
    SELECT key, 1, 0, NULL FROM unnest(_took) key
    UNION ALL
    SELECT key, 0, 1, NULL FROM unnest(_groups) key
    UNION ALL
    SELECT '', 0, 0, NULL WHERE _taken > 0
  ) done GROUP BY 1
), held AS MATERIALIZED (
  SELECT o.*, g.at, g.turn, g.place, _ring.base + (o.took - 1) * _ring.many + o.n AS number FROM o,
    LATERAL (
      SELECT ctid AS at, turn, place FROM groups g
      WHERE g.queue = _queue AND g.key = o.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
    ) g
), written AS (
  UPDATE groups g
  SET active = g.active + held.took - held.freed,
    turn = CASE WHEN held.n IS NULL THEN g.turn
      WHEN (
        SELECT ord FROM jobs WHERE queue = _queue AND lock_key = held.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
        ORDER BY priority, ord LIMIT 1
      ) IS NULL THEN NULL
      WHEN held.took = 0 THEN g.turn ELSE held.number END,
    last_turn = CASE WHEN held.key = '' THEN greatest(g.last_turn, (SELECT max(number) FROM held WHERE took > 0)) END,
    place = CASE WHEN held.n IS NULL AND (g.place OR held.key = '') THEN g.place
      ELSE group_place(g.paused, g.active + held.took - held.freed, g.max_active, (SELECT group_max FROM queues WHERE queue = _queue)) END
  FROM held WHERE g.ctid = held.at
  RETURNING held.key, held.freed, held.freed > 0 AND NOT held.place AS shown, held.turn IS DISTINCT FROM g.turn AS moved
)
SELECT count(*) FILTER (WHERE moved) AS moved, bool_or(shown) AS shown, sum(freed) AS freed, array_agg(key) FILTER (WHERE freed > 0) AS keys
INTO _wrote FROM written;
IF _groups IS NOT NULL THEN
  _room := _room OR _wrote.shown IS TRUE;
  IF _wrote.freed IS DISTINCT FROM cardinality(_groups) THEN
    PERFORM note_groups(_queue, ARRAY(SELECT key FROM unnest(_groups) key WHERE (key = ANY (_wrote.keys)) IS NOT TRUE), NULL);
    _room := true;
  END IF;
  _groups := NULL;
END IF;
