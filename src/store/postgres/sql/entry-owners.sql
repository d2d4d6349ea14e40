-- Returns the jobs that own the entries of deduplication ids; null where no entry counts.
-- Called by: inspect.ts.
CREATE FUNCTION entry_owners(_name text, _ids text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(entry_owner(_queue, floor(clock_ms())::bigint, id) ORDER BY n) FROM unnest(_ids) WITH ORDINALITY o(id, n)
  );
END
$body$;
