-- Returns the locks of jobs, in the order of the ids; null for a job that is not active.
-- Called by: inspect.ts.
CREATE FUNCTION locks_of(_name text, _ids text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (SELECT json_agg(lock_of(_name, id)::json ORDER BY n) FROM unnest(_ids) WITH ORDINALITY o(id, n));
END
$body$;
