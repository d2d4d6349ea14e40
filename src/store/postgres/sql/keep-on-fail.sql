-- Reads removeOnFail from the job's own options, for a failure that no worker reports. Options that cannot be parsed remove nothing.
-- Called by: fail-open.sql, hand-back.sql.
CREATE FUNCTION keep_on_fail(_opts text, OUT most float8, OUT age float8) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _rule json;
BEGIN
  _rule := _opts::json -> 'removeOnFail';
  IF json_typeof(_rule) = 'boolean' THEN
    most := CASE WHEN _rule::text = 'true' THEN 0 END;
  ELSIF json_typeof(_rule) = 'number' THEN
    most := _rule::text;
  ELSIF json_typeof(_rule) = 'object' THEN
    IF json_typeof(_rule -> 'count') = 'number' THEN most := _rule ->> 'count'; END IF;
    IF json_typeof(_rule -> 'age') = 'number' THEN age := (_rule ->> 'age')::float8 * 1000; END IF;
  END IF;
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN;
END
$body$;
