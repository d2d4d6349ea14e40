-- Returns a part of a list of jobs.
-- Called by: inspect.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- MOST_ROWS = 10000: the most jobs of one reply.
CREATE FUNCTION list_jobs(
  _name text, _list text, _start bigint, _end bigint, _asc boolean, _budget bigint DEFAULT 9007199254740991,
  _used bigint DEFAULT 0, _inline int DEFAULT 2147483647, _group text DEFAULT NULL
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
