-- Locks the next groups of the ring, and appends them to the lists. Of each it counts about as many waiting jobs as turns come to it.
_batch := ARRAY(
  SELECT key FROM groups
  WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND key <> ALL (_keys)
    AND (turn, key) >= (_from, '') AND (xmax = 0 OR untouched(xmax))
  ORDER BY turn, key LIMIT _room FOR UPDATE SKIP LOCKED
);
_all := cardinality(_batch) < _room;
-- After the locks: a change of the limits holds them too.
SELECT * INTO _row FROM queues WHERE queue = _queue;
_most := 2 + 2 * _room / greatest(1, cardinality(_batch));
FOR _one IN
  SELECT g.*, group_waits(_queue, g.key, _most) AS waits FROM unnest(_batch) o(key),
    LATERAL (
      SELECT g.key, g.turn,
        CASE WHEN paused THEN 0 ELSE least(
          coalesce(max_active, _row.group_max, 'infinity') - active,
          coalesce(rate_max, _row.group_rate_max, 'infinity') - CASE WHEN window_ends > _now THEN window_used ELSE 0 END, _room
        ) END::int AS room
      FROM groups g WHERE g.queue = _queue AND g.key = o.key OFFSET 0
    ) g
  ORDER BY turn, key
LOOP
  _from := _one.turn;
  _keys := _keys || _one.key;
  _turns := _turns || _one.turn;
  _took := _took || 0;
  _rooms := _rooms || _one.room;
  _waits := _waits || CASE WHEN _one.waits = _most THEN group_waits(_queue, _one.key, _room + 1) ELSE _one.waits END;
END LOOP;
