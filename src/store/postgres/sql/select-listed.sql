-- Locks the unlocked jobs of one list, the oldest first.
-- Called by: clear-lists.sql, requeue-listed.sql.
-- States: -1 behind, 0 keyed, 1 waiting, 2 delayed, 4 completed.
-- SORTED_UP_TO = 10000: up to this many jobs, waiting and delayed jobs are sorted by age. More are taken in the order of the index:
--   otherwise emptying a queue of a million jobs in chunks would sort a million rows for each chunk.
CREATE FUNCTION select_listed(_queue int, _list text, _latest bigint, _limit int) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _state smallint := coalesce(array_position('{waiting,delayed,active,completed,failed}'::text[], _list), 1);
  _rows tid[];
  _counts record;
BEGIN
  SELECT * INTO _counts FROM counts_of(_queue);
  IF _state >= 4 THEN
    -- Cut here and not by the query, which would go on through all that are younger.
    _rows := ARRAY(
      SELECT ctid FROM (
        SELECT ctid, finished_on FROM jobs WHERE queue = _queue AND state >= 4 AND state = _state ORDER BY ord LIMIT _limit
      ) j
      WHERE finished_on <= _latest
    );
  ELSIF _list = 'waiting' AND _counts.waiting <= 10000 THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 0 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = -1 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
      ) j
      ORDER BY added LIMIT _limit
    );
  ELSIF _list = 'waiting' THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 0 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = -1 AND priority = 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
      ) j LIMIT _limit
    );
  ELSIF _list = 'prioritized' AND _counts.prioritized <= 10000 THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 1 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 0 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = -1 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord OFFSET 0
        ) j
      ) j
      ORDER BY added LIMIT _limit
    );
  ELSIF _list = 'prioritized' THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 1 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = 0 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
        UNION ALL
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs
          WHERE queue = _queue AND state = -1 AND priority > 0 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY priority, ord LIMIT _limit
        ) j
      ) j LIMIT _limit
    );
  ELSIF _list = 'delayed' AND _counts.delayed <= 10000 THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs WHERE queue = _queue AND state = 2 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY due_at, ord OFFSET 0
        ) j
      ) j
      ORDER BY added LIMIT _limit
    );
  ELSIF _list = 'delayed' THEN
    _rows := ARRAY(
      SELECT at FROM (
        SELECT * FROM (
          SELECT ctid AS at, added FROM jobs WHERE queue = _queue AND state = 2 AND coalesce(processed_on, added_at) <= _latest
          ORDER BY due_at, ord LIMIT _limit
        ) j
      ) j LIMIT _limit
    );
  ELSE
    -- Active jobs are locked, all of them.
    RETURN '{}';
  END IF;
  RETURN ARRAY(
    SELECT ctid FROM jobs
    WHERE ctid = ANY (_rows) AND greatest(state, 1) = _state AND (_state <> 1 OR (priority > 0) = (_list = 'prioritized'))
      AND (xmax = 0 OR untouched(xmax))
    ORDER BY CASE WHEN _state >= 4 THEN ord ELSE added END FOR UPDATE SKIP LOCKED
  );
END
$body$;
