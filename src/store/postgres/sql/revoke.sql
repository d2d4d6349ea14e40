-- Takes locks of jobs away. The jobs go back without counting a stall.
-- Processes of earlier versions call it.
-- Called by: older versions.
CREATE FUNCTION revoke(_name text, _ids text[], _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (
    SELECT json_agg(status = 'done' ORDER BY n) FROM json_array_elements_text(revoke_jobs(_name, _ids, _reason)::json) WITH ORDINALITY o(status, n)
  );
END
$body$;
