-- Locks the unlocked jobs of one list, the oldest first; _removing: without next jobs of schedules; _letters: dead letters alone.
-- Called by: cancel-listed.sql, clear-lists.sql, requeue-listed.sql, send-listed.sql.
-- States: -2 grouped, -1 behind, 0 keyed, 1 waiting, 2 delayed, 4 completed.
-- MARK.next = 16
-- SORTED_UP_TO = 10000: up to this many jobs, waiting and delayed jobs are sorted by age. More are taken in the order of the index:
--   otherwise emptying a queue of a million jobs in chunks would sort a million rows for each chunk.
-- The statement for waiting and delayed jobs is put together from these parts. Nothing of it comes from outside.
CREATE FUNCTION select_listed(
  _queue int, _list text, _latest bigint, _limit int, _removing boolean, _letters boolean DEFAULT false
) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _state smallint := coalesce(array_position('{waiting,delayed,active,completed,failed,waiting-children}'::text[], _list), 1);
  _sorted boolean;
  _rows tid[];
  _counts record;
BEGIN
  SELECT * INTO _counts FROM counts_of(_queue);
  IF _state >= 4 THEN
    -- Cut here and not by the query, which would go on through all that are younger.
    _rows := ARRAY(
      SELECT ctid FROM (
        SELECT ctid, coalesce(finished_on, processed_on, added_at) AS since FROM jobs
        WHERE queue = _queue AND state >= 4 AND state = _state
          AND (NOT _letters OR extras::json -> 'o' IS NOT NULL)
        ORDER BY ord LIMIT _limit
      ) j
      WHERE since <= _latest
    );
  ELSIF _list <> 'active' THEN
    _sorted := CASE _list WHEN 'waiting' THEN _counts.waiting WHEN 'prioritized' THEN _counts.prioritized ELSE _counts.delayed END <= 10000;
    EXECUTE (
      SELECT 'SELECT ARRAY(SELECT at FROM (' || string_agg(
          '(SELECT ctid AS at, added FROM jobs WHERE queue = $1 AND ' || part
            || CASE WHEN _removing THEN ' AND marks & 16 = 0' ELSE '' END
            || CASE WHEN _letters THEN ' AND extras::json -> ''o'' IS NOT NULL' ELSE '' END
            || ' AND coalesce(processed_on, added_at) <= $2 ORDER BY '
            || CASE WHEN _list = 'delayed' THEN 'due_at' ELSE 'priority' END || ', ord'
            || CASE WHEN _sorted THEN ' OFFSET 0)' ELSE ' LIMIT $3)' END, ' UNION ALL '
        ) || ') j' || CASE WHEN _sorted THEN ' ORDER BY added' ELSE '' END || ' LIMIT $3)'
      FROM unnest(
        CASE _list WHEN 'waiting' THEN ARRAY['state = 1 AND priority = 0', 'state = 0 AND priority = 0', 'state = -1 AND priority = 0',
          'state = -2 AND priority = 0']
          WHEN 'prioritized' THEN ARRAY['state = 1 AND priority > 0', 'state = 0 AND priority > 0', 'state = -1 AND priority > 0',
            'state = -2 AND priority > 0']
          ELSE ARRAY['state = 2'] END
      ) part
    ) INTO _rows USING _queue, _latest, _limit;
  ELSE
    -- Active jobs are locked, all of them.
    RETURN '{}';
  END IF;
  RETURN ARRAY(
    SELECT ctid FROM jobs
    WHERE ctid = ANY (_rows) AND greatest(state, 1) = _state AND NOT (_removing AND marks & 16 > 0)
      AND (_state <> 1 OR (priority > 0) = (_list = 'prioritized')) AND (xmax = 0 OR untouched(xmax))
    ORDER BY CASE WHEN _state >= 4 THEN ord ELSE added END FOR UPDATE SKIP LOCKED
  );
END
$body$;
