-- Returns log rows of a job.
-- Called by: inspect.ts.
CREATE FUNCTION logs_of(
  _name text, _job text, _start bigint, _end bigint, _asc boolean, _budget bigint DEFAULT 9007199254740991
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
