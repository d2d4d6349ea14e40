-- Returns a part of a list of jobs.
-- Called by: inspect.ts.
-- States: -1 behind, 0 keyed, 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- MOST_ROWS = 10000: the most jobs of one reply.
CREATE FUNCTION list_jobs(
  _name text, _list text, _start bigint, _end bigint, _asc boolean, _budget bigint DEFAULT 9007199254740991,
  _used bigint DEFAULT 0, _inline int DEFAULT 2147483647
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _size bigint;
  _from bigint;
  _count bigint;
  _reply text;
  _most bigint := CASE WHEN _budget < 9007199254740991 THEN 10000 ELSE _budget END;
BEGIN
  SELECT CASE _list WHEN 'waiting' THEN waiting WHEN 'prioritized' THEN prioritized WHEN 'delayed' THEN delayed
    WHEN 'active' THEN active WHEN 'completed' THEN completed WHEN 'failed' THEN failed END
  INTO _size FROM counts_of(_queue);
  _from := greatest(0, CASE WHEN _start < 0 THEN _size + _start ELSE _start END);
  _count := CASE WHEN _end < 0 THEN _size + _end ELSE least(_end, _size - 1) END - _from + 1;
  IF _size IS NULL OR _count <= 0 THEN RETURN '[null]'; END IF;
  _count := least(_count, _most + 1);
  _list := _list || CASE WHEN _asc THEN ' ASC' ELSE ' DESC' END;
  IF _list LIKE ANY ('{waiting %,prioritized %}') AND (
    -- include: any-keyed
    OR (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 ORDER BY priority, ord LIMIT 1) IS NOT NULL
  ) THEN
    -- Jobs that claims look at, then jobs behind. Each subquery reads as many rows as may be requested.
    _list := _list || ' keyed';
  END IF;
  CASE _list
    WHEN 'waiting ASC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 ORDER BY ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'waiting DESC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 ORDER BY ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'prioritized ASC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority ASC, ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'prioritized DESC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority DESC, ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'delayed ASC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at ASC, ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'delayed DESC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at DESC, ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'active ASC' THEN
      WITH listed AS (
        SELECT * FROM (SELECT * FROM jobs WHERE queue = _queue AND state = 3 ORDER BY session, fence OFFSET 0) all_of_them
        ORDER BY fence ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'active DESC' THEN
      WITH listed AS (
        SELECT * FROM (SELECT * FROM jobs WHERE queue = _queue AND state = 3 ORDER BY session, fence OFFSET 0) all_of_them
        ORDER BY fence DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'completed ASC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state >= 4 AND state = 4 ORDER BY ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'completed DESC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state >= 4 AND state = 4 ORDER BY ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'failed ASC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state >= 4 AND state = 5 ORDER BY ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'failed DESC' THEN
      WITH listed AS (
        SELECT * FROM jobs WHERE queue = _queue AND state >= 4 AND state = 5 ORDER BY ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'waiting ASC keyed' THEN
      WITH listed AS (
        SELECT * FROM (
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 ORDER BY ord ASC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 ORDER BY ord ASC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 ORDER BY ord ASC LIMIT _from + _count
          ) j
        ) j
        ORDER BY behind ASC, ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'waiting DESC keyed' THEN
      WITH listed AS (
        SELECT * FROM (
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 ORDER BY ord DESC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 0 AND priority = 0 ORDER BY ord DESC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 ORDER BY ord DESC LIMIT _from + _count
          ) j
        ) j
        ORDER BY behind DESC, ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'prioritized ASC keyed' THEN
      WITH listed AS (
        SELECT * FROM (
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority ASC, ord ASC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 0 AND priority > 0 ORDER BY priority ASC, ord ASC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = -1 AND priority > 0 ORDER BY priority ASC, ord ASC LIMIT _from + _count
          ) j
        ) j
        ORDER BY behind ASC, priority ASC, ord ASC LIMIT _count OFFSET _from
      )
      -- include: listed
    WHEN 'prioritized DESC keyed' THEN
      WITH listed AS (
        SELECT * FROM (
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority DESC, ord DESC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = 0 AND priority > 0 ORDER BY priority DESC, ord DESC LIMIT _from + _count
          ) j
          UNION ALL
          SELECT * FROM (
            SELECT *, state = -1 AS behind FROM jobs WHERE queue = _queue AND state = -1 AND priority > 0 ORDER BY priority DESC, ord DESC LIMIT _from + _count
          ) j
        ) j
        ORDER BY behind DESC, priority DESC, ord DESC LIMIT _count OFFSET _from
      )
      -- include: listed
  END CASE;
  RETURN _reply;
END
$body$;
