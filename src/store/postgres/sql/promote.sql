-- Moves delayed jobs, which the caller has locked, to waiting, in the given order.
-- Called by: grant-by-id.sql, promote-due.sql.
-- MARK.key = 1
CREATE FUNCTION promote(_queue int, _due tid[], INOUT _change journal) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _sum record;
BEGIN
  WITH promoted AS (
    UPDATE jobs SET state =
      -- include: waiting-state
      , lock_key =
      -- include: waiting-key
      , ord = _base + due.n, delay = 0, due_at = NULL
    FROM unnest(_due) WITH ORDINALITY due(at, n) WHERE jobs.ctid = due.at RETURNING due.n, id, priority,
      CASE WHEN marks & 1 > 0 THEN lock_key END AS member
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
    event('waiting', array_agg(id ORDER BY n), '{"prev":"delayed"}') AS body,
    array_agg(member) FILTER (WHERE member IS NOT NULL) AS entered
  INTO _sum FROM promoted;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  IF _sum.entered IS NOT NULL THEN PERFORM note_groups(_queue, NULL, _sum.entered::text[]); END IF;
  _change.delayed := _change.delayed - _sum.jobs;
  _change.waiting := _change.waiting + _sum.plain;
  _change.prioritized := _change.prioritized + _sum.jobs - _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END
$body$;
