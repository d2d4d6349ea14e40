-- Returns for each session whether it is open and not suspected and, if the caller asks for _notices, whether it has notices. Not a verb: it is
-- called so often that the settings of a verb would be half of its cost. A few rows by their keys need fewer settings.
-- Called by: probe.ts.
CREATE FUNCTION unsuspected(_names text[], _ids text[], _notices boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan TO off
AS $body$
DECLARE
  _replies boolean[] := '{}';
  _noticed boolean[] := '{}';
  _queue int;
BEGIN
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _queue := (SELECT queue FROM queues WHERE name = _names[_n]);
    PERFORM FROM sessions WHERE queue = _queue AND id = _ids[_n] AND reaped + 0 = 0 AND NOT suspected AND expires_at > clock_ms();
    _replies := _replies || FOUND;
    CONTINUE WHEN NOT _notices;
    _noticed := _noticed || EXISTS (SELECT FROM revocations WHERE queue = _queue AND session = _ids[_n]);
  END LOOP;
  RETURN CASE WHEN _notices THEN json_build_array(_replies, _noticed) ELSE array_to_json(_replies) END;
END
$body$;
