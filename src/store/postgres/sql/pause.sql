-- Pauses or resumes a queue.
-- Called by: older versions.
CREATE FUNCTION pause(_name text, _paused boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN configure(_name, jsonb_build_object('paused', _paused));
END
$body$;
