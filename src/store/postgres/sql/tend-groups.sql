-- Removes rows of groups that have neither jobs nor settings. It waits for no lock.
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
END
$body$;
