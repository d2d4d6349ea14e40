-- Returns counts and settings of a queue. `limited` is for older versions, which read no window.
-- Called by: inspect.ts.
CREATE FUNCTION status(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _now bigint := floor(clock_ms());
  _row queues;
  _counts record;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT * INTO _counts FROM counts_of(_row.queue);
  RETURN json_build_object(
    'paused', _row.paused, 'counts', row_to_json(_counts), 'cap', _row.max_active, 'limited',
    limited_ms(_row, _row.window_max, _now), 'blocked', greatest(0, _row.limited_until - _now), 'rate',
    CASE WHEN _row.rate_max IS NOT NULL THEN json_build_object('max', _row.rate_max, 'durationMs', _row.rate_ms) END, 'window',
    CASE WHEN _row.window_ends > _now THEN json_build_object('used', _row.window_used, 'endsInMs', _row.window_ends - _now) END
  );
END
$body$;
