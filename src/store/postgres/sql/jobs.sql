-- Reading jobs and lists of jobs.

-- name: jobs_by_id
-- Returns jobs by their ids.
-- Called by: inspect.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
-- MOST_ROWS = 10000: the most jobs of one reply.
CREATE FUNCTION jobs_by_id(
  _name text, _ids text[], _budget bigint, _used bigint,
  _inline int
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _reply text;
  _most bigint := CASE WHEN _budget < 9007199254740991 THEN 10000 ELSE _budget END;
BEGIN
  WITH listed AS (
    SELECT j.* FROM unnest(_ids) WITH ORDINALITY o(wanted, n)
    LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.wanted AND true OFFSET 0) j ON true ORDER BY o.n
  )
  -- include: listed
  RETURN _reply;
END
$body$;

-- name: list_jobs
-- Returns a part of a list of jobs.
-- Called by: inspect.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
-- MOST_ROWS = 10000: the most jobs of one reply.
CREATE FUNCTION list_jobs(
  _name text, _list text, _start bigint, _end bigint, _asc boolean, _budget bigint,
  _used bigint, _inline int, _group text DEFAULT NULL
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
    WHEN 'active' THEN active WHEN 'completed' THEN completed WHEN 'failed' THEN failed
    WHEN 'waiting-children' THEN "waiting-children"
    WHEN 'group' THEN group_waits(_queue, _group, 9000000000000000) END
  INTO _size FROM counts_of(_queue);
  _from := greatest(0, CASE WHEN _start < 0 THEN _size + _start ELSE _start END);
  _count := CASE WHEN _end < 0 THEN _size + _end ELSE least(_end, _size - 1) END - _from + 1;
  IF _size IS NULL OR _count <= 0 THEN RETURN '[null]'; END IF;
  _count := least(_count, _most + 1);
  WITH listed AS (
    SELECT j.* FROM unnest(listed_rows(_queue, _list, _from, _count, _asc, _group)) WITH ORDINALITY r(at, n),
      LATERAL (SELECT * FROM jobs WHERE ctid = r.at OFFSET 0) j
    ORDER BY r.n
  )
  -- include: listed
  RETURN _reply;
END
$body$;

-- name: listed_rows
-- Returns where the jobs of a part of a list are. It reads the snapshot of its caller, because it is STABLE.
-- The statement is put together, because an order and its reverse cannot be the same text. Nothing of it comes from outside.
-- Called by: list_jobs.
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

-- name: large_values
-- Returns the texts of large jobs, which replies leave out. The texts come as rows, one by one as the server reads them.
-- Called by: state/large-values.ts.
CREATE FUNCTION large_values(
  _name text, _ids text[], _fences bigint[]
) RETURNS TABLE (wanted text, _data text, _progress text, _returnvalue text) LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  -- A null fence is that of a reader who is not the owner.
  RETURN QUERY
  SELECT o.id, j.data, j.progress, j.returnvalue FROM unnest(_ids, _fences) o(id, fence),
    LATERAL (SELECT fence, data, progress, returnvalue FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  WHERE o.fence IS NULL OR j.fence = o.fence;
END
$body$;

-- name: logs_of
-- Returns log rows of a job.
-- Called by: inspect.ts.
CREATE FUNCTION logs_of(
  _name text, _job text, _start bigint, _end bigint, _asc boolean, _budget bigint
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _first bigint;
  _next bigint;
  _size bigint;
  _from bigint;
  _count bigint;
  _rows text[];
BEGIN
  SELECT log_first, log_next INTO _first, _next FROM jobs WHERE queue = _queue AND id = _job;
  _size := coalesce(_next - _first, 0);
  _from := greatest(0, CASE WHEN _start < 0 THEN _size + _start ELSE _start END);
  _count := CASE WHEN _end < 0 THEN _size + _end ELSE least(_end, _size - 1) END - _from + 1;
  IF _count > 0 THEN
    IF _asc THEN
      _rows := ARRAY(
        SELECT row FROM (
          SELECT row, octet_length(row) AS size, sum(octet_length(row)) OVER (ROWS UNBOUNDED PRECEDING) AS upto
          FROM (
            SELECT row FROM logs
            WHERE queue = _queue AND job = _job AND number >= _first + _from AND number < _first + _from + _count
            ORDER BY number ASC
          ) l
        ) l
        WHERE upto <= _budget OR upto = size
      );
    ELSE
      _rows := ARRAY(
        SELECT row FROM (
          SELECT row, octet_length(row) AS size, sum(octet_length(row)) OVER (ROWS UNBOUNDED PRECEDING) AS upto
          FROM (
            SELECT row FROM logs
            WHERE queue = _queue AND job = _job AND number < _next - _from AND number >= _next - _from - _count
            ORDER BY number DESC
          ) l
        ) l
        WHERE upto <= _budget OR upto = size
      );
    END IF;
  END IF;
  RETURN json_build_object('logs', coalesce(_rows, '{}'), 'count', _size);
END
$body$;

-- name: priority_counts
-- Returns the numbers of waiting jobs with these priorities. The jobs without one are counted by the queue, the others one by one.
-- Called by: inspect.ts.
-- States: -2 grouped, -1 behind, 0 keyed, 1 waiting.
CREATE FUNCTION priority_counts(_name text, _priorities bigint[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _plain bigint := (SELECT waiting FROM counts_of(_queue));
BEGIN
  RETURN (
    SELECT json_agg(
      CASE WHEN priority = 0 THEN coalesce(_plain, 0) ELSE (
        SELECT count(*) FROM unnest('{-2,-1,0,1}'::smallint[]) s(state),
          LATERAL (
            SELECT FROM jobs j WHERE j.queue = _queue AND j.state <= 1 AND j.state = s.state AND j.priority = asked.priority
            ORDER BY j.ord OFFSET 0
          ) j
      ) END
      ORDER BY n
    )
    FROM unnest(_priorities) WITH ORDINALITY asked(priority, n)
  );
END
$body$;

-- part: listed
-- Packs the jobs of `listed` into _reply, as far as they fit into a reply of _budget bytes, of which _used are used, and of _most jobs:
-- an array per column of JobArrays in record.ts, and whether the list was cut. Without rows, everything is null.
-- The server knows the size of a text without reading it.
, sized AS (
  SELECT *,
    coalesce(octet_length(data) + coalesce(octet_length(progress), 0) + coalesce(octet_length(returnvalue), 0), 0) AS size
  FROM listed
), fitting AS (
  SELECT *, nth <= _most AND (upto + _used <= _budget OR (upto = size AND _used = 0)) AS fits FROM (
    SELECT *, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS nth FROM sized
  ) j
)
SELECT json_build_array(
  array_agg(id) FILTER (WHERE fits), array_agg(name) FILTER (WHERE fits),
  array_agg(CASE WHEN size <= _inline THEN data END) FILTER (WHERE fits), array_agg(opts) FILTER (WHERE fits),
  array_agg(state) FILTER (WHERE fits), array_agg(priority) FILTER (WHERE fits), array_agg(delay) FILTER (WHERE fits),
  array_agg(timestamp) FILTER (WHERE fits), array_agg(attempts_made) FILTER (WHERE fits),
  array_agg(attempts_started) FILTER (WHERE fits), array_agg(stalled_counter) FILTER (WHERE fits),
  array_agg(processed_on) FILTER (WHERE fits), array_agg(finished_on) FILTER (WHERE fits),
  array_agg(processed_by) FILTER (WHERE fits), array_agg(CASE WHEN size <= _inline THEN returnvalue END) FILTER (WHERE fits),
  array_agg(failed_reason) FILTER (WHERE fits), array_agg(stacktrace) FILTER (WHERE fits),
  array_agg(CASE WHEN size <= _inline THEN progress END) FILTER (WHERE fits), array_agg(fence) FILTER (WHERE fits),
  array_agg(lost_by) FILTER (WHERE fits), json_object_agg(id, extras) FILTER (WHERE fits AND extras IS NOT NULL), bool_or(NOT fits)
)::text INTO _reply FROM fitting;
