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
