-- Returns whether a group has a place beside _more further jobs. The caller holds the row of the group.
-- Called by: grant-by-id.sql.
CREATE FUNCTION group_has_place(_queue int, _key text, _more int) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT group_place(g.paused, g.active + _more, g.max_active, q.group_max) FROM groups g, queues q
    WHERE g.queue = _queue AND g.key = _key AND q.queue = _queue
  );
END
$body$;
