-- Moves delayed jobs that are due to waiting.
-- Called by: take.sql.
-- States: 2 delayed.
-- PROMOTED_AT_ONCE = 500: how many delayed jobs one claim moves to waiting.
CREATE FUNCTION promote_due(_queue int, _now bigint, _change journal) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN promote(
    _queue,
    ARRAY(
      SELECT ctid FROM jobs WHERE queue = _queue AND state = 2 AND due_at <= _now AND (xmax = 0 OR untouched(xmax))
      ORDER BY due_at, ord LIMIT 500 FOR UPDATE SKIP LOCKED
    ), _change
  );
END
$body$;
