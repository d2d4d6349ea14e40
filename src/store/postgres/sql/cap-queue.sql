-- Sets or removes the cap of a queue.
-- Called by: older versions.
CREATE FUNCTION cap_queue(_name text, _most float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN configure(_name, jsonb_build_object('cap', CASE WHEN _most IS NOT NULL THEN jsonb_build_object('maxActive', _most) END));
END
$body$;
