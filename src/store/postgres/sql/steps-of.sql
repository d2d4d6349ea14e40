-- Returns the steps of a job in their order: a name and a value each.
-- Called by: inspect.ts.
CREATE FUNCTION steps_of(_name text, _job text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN coalesce(
    (
      SELECT json_agg(json_build_array(name, value))
      FROM (
        SELECT name, value FROM steps WHERE queue = (SELECT queue FROM queues WHERE queues.name = _name) AND job = _job ORDER BY ord
      ) s
    ), '[]'
  );
END
$body$;
