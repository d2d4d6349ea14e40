-- Returns the jobs that a session holds.
-- Called by: inspect.ts.
-- States: 3 active.
CREATE FUNCTION owned(_name text, _session text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_agg(json_build_array(id, fence, claim_seq))
    FROM (SELECT id, fence, claim_seq FROM jobs WHERE queue = _queue AND state = 3 AND session = _session ORDER BY fence) held
  );
END
$body$;
