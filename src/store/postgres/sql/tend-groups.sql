-- Removes rows of groups that have neither jobs nor settings, and corrects rows that say wrongly that there is no place. That happens if a
-- claim makes the row of a group while the limits of all groups change. It waits for no lock.
-- Called by: upkeep.sql.
-- TENDED_AT_ONCE = 500
CREATE FUNCTION tend_groups(_now bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM groups
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM groups
      WHERE turn IS NULL AND active = 0 AND NOT paused AND max_active IS NULL AND rate_max IS NULL AND blocked_until <= _now
        AND window_ends <= _now AND key <> '' AND (xmax = 0 OR untouched(xmax))
      LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
  UPDATE groups SET place = true
  WHERE ctid = ANY (
    ARRAY(
      SELECT g.ctid FROM groups g
      WHERE NOT g.place AND g.key <> '' AND (g.xmax = 0 OR untouched(g.xmax)) AND group_place(
        g.paused, g.active, g.max_active, (SELECT group_max FROM queues q WHERE q.queue = g.queue)
      )
      LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;
