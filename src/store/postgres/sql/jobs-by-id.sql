-- Returns jobs by their ids.
-- Called by: inspect.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
-- MOST_ROWS = 10000: the most jobs of one reply.
CREATE FUNCTION jobs_by_id(
  _name text, _ids text[], _budget bigint DEFAULT 9007199254740991, _used bigint DEFAULT 0,
  _inline int DEFAULT 2147483647
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
