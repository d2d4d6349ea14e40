-- Lets the groups whose rest is over back into the ring.
-- RESTS_AT_ONCE = 500
UPDATE groups SET rests_until = NULL
WHERE ctid = ANY (
  ARRAY(
    SELECT ctid FROM groups WHERE queue = _queue AND rests_until IS NOT NULL AND rests_until <= _now
      AND (xmax = 0 OR untouched(xmax))
    ORDER BY rests_until LIMIT 500 FOR UPDATE SKIP LOCKED
  )
);
