-- Returns counts and settings of a queue.
-- Called by: inspect.ts.
CREATE FUNCTION status(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _row queues;
  _counts record;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT * INTO _counts FROM counts_of(_row.queue);
  RETURN json_build_object(
    'paused', _row.paused, 'counts', row_to_json(_counts), 'cap', _row.max_active, 'limited',
    limited_ms(_row, _row.window_max, floor(clock_ms())::bigint)
  );
END
$body$;
