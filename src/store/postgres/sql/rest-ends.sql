-- Returns when the rest of a group ends that has a waiting job and a place; null: there is none.
-- Called by: claim.sql, take.sql.
CREATE FUNCTION rest_ends(_queue int, _now bigint) RETURNS bigint LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT g.rests_until FROM queues q,
      LATERAL (
        SELECT *, (SELECT sum(freed) FROM group_notes n WHERE n.queue = g.queue AND n.key = g.key) AS freed FROM groups g
        WHERE g.queue = _queue AND g.rests_until IS NOT NULL AND g.rests_until > _now ORDER BY g.rests_until OFFSET 0
      ) g
    WHERE q.queue = _queue AND group_place(g.paused, g.active - coalesce(g.freed, 0), g.max_active, q.group_max)
      AND group_waits(_queue, g.key, 1) > 0 LIMIT 1
  );
END
$body$;
