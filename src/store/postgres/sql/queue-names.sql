-- Returns the names of the queues after a name, in the order of their bytes.
-- Called by: inspect.ts.
CREATE FUNCTION queue_names(_after text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (SELECT coalesce(json_agg(name), '[]') FROM (SELECT name FROM queues WHERE name > _after ORDER BY name LIMIT _limit) q);
END
$body$;
