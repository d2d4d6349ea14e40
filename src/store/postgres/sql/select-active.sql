-- Locks active jobs that are not cancelled, the oldest first, as select-listed.sql does for other lists.
-- Called by: cancel-listed.sql.
-- States: 3 active.
-- MARK.cancelled = 256
CREATE FUNCTION select_active(_queue int, _latest bigint, _limit int) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _rows tid[] := ARRAY(
    SELECT at FROM (
      SELECT ctid AS at, added FROM jobs
      WHERE queue = _queue AND state = 3 AND marks & 256 = 0 AND coalesce(processed_on, added_at) <= _latest ORDER BY session, fence OFFSET 0
    ) j
    ORDER BY added LIMIT _limit
  );
BEGIN
  RETURN ARRAY(
    SELECT ctid FROM jobs WHERE ctid = ANY (_rows) AND state + 0 = 3 AND marks & 256 = 0 AND (xmax = 0 OR untouched(xmax))
    ORDER BY added FOR UPDATE SKIP LOCKED
  );
END
$body$;
