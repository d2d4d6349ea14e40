-- Returns where the jobs of a part of a list are. It reads the snapshot of its caller, because it is STABLE.
-- The statement is put together, because an order and its reverse cannot be the same text. Nothing of it comes from outside.
-- Called by: list-jobs.sql.
-- States: -2 grouped, -1 behind, 0 keyed, 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
CREATE FUNCTION listed_rows(
  _queue int, _list text, _from bigint, _count bigint, _asc boolean, _group text DEFAULT NULL
) RETURNS tid[] LANGUAGE plpgsql STABLE AS $body$
DECLARE
  _way text := CASE WHEN _asc THEN ' ASC' ELSE ' DESC' END;
  _order text := CASE _list WHEN 'waiting' THEN 'priority' || _way || ', ord' WHEN 'prioritized' THEN 'priority' || _way || ', ord'
    WHEN 'delayed' THEN 'due_at' || _way || ', ord' WHEN 'active' THEN 'fence' ELSE 'ord' END || _way;
  _found text := 'SELECT ctid AS at, state < 0 AS behind, priority, ord FROM jobs WHERE queue = $1 AND '
    || CASE _list WHEN 'waiting' THEN 'state = 1 AND priority = 0' WHEN 'prioritized' THEN 'state = 1 AND priority > 0'
      WHEN 'delayed' THEN 'state = 2' WHEN 'completed' THEN 'state >= 4 AND state = 4' WHEN 'failed' THEN 'state >= 4 AND state = 5'
      ELSE 'state >= 4 AND state = 6' END
    || ' ORDER BY ' || _order;
  _rows tid[];
BEGIN
  IF _list = 'group' THEN
    _found := 'SELECT ctid AS at FROM jobs
      WHERE queue = $1 AND lock_key = $4 AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
      ORDER BY priority' || _way || ', ord' || _way;
  ELSIF _list = 'active' THEN
    _found := 'SELECT * FROM (
        SELECT ctid AS at, fence FROM jobs WHERE queue = $1 AND state = 3 ORDER BY session, fence OFFSET 0
      ) all_of_them
      ORDER BY ' || _order;
  ELSIF _list IN ('waiting', 'prioritized') AND (
    -- include: any-keyed
    OR (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 ORDER BY priority, ord LIMIT 1) IS NOT NULL
    OR (SELECT ord FROM jobs WHERE queue = _queue AND state = -2 ORDER BY priority, ord LIMIT 1) IS NOT NULL
  ) THEN
    -- Jobs that claims look at, then jobs behind. Each subquery reads as many rows as may be requested.
    _found := (
      SELECT 'SELECT * FROM ('
        || string_agg('(' || replace(_found, 'state = 1', 'state = ' || state) || ' LIMIT $2 + $3)', ' UNION ALL ')
        || ') j ORDER BY behind' || _way || ', ' || _order
      FROM unnest(ARRAY[1, 0, -1, -2]) state
    );
  END IF;
  EXECUTE 'SELECT ARRAY(SELECT at FROM (' || _found || ' LIMIT $3 OFFSET $2) j)' INTO _rows USING _queue, _from, _count, _group;
  RETURN _rows;
END
$body$;
