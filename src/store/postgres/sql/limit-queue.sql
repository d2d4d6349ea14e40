-- Blocks the claims of a queue for a while, or ends that.
-- Called by: older versions.
CREATE FUNCTION limit_queue(_name text, _duration float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN configure(_name, jsonb_build_object('blockedMs', _duration));
END
$body$;
