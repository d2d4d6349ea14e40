-- Returns which owners lost these jobs.
-- Called by: state/lost-by.ts.
CREATE FUNCTION losses(_name text, _ids text[]) RETURNS TABLE (wanted text, loss text) LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN QUERY
  SELECT o.id, j.lost_by FROM unnest(_ids) o(id),
    LATERAL (SELECT lost_by FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  WHERE j.lost_by IS NOT NULL;
END
$body$;
