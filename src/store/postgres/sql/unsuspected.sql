-- Returns for each session whether it is open and not suspected. Not a verb: it is called so often that the settings of a verb would be
-- half of its cost. Two rows by their keys need fewer settings.
-- Called by: probe.ts.
CREATE FUNCTION unsuspected(_names text[], _ids text[]) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan TO off
AS $body$
DECLARE
  _replies boolean[] := '{}';
BEGIN
  FOR _n IN 1 .. cardinality(_ids) LOOP
    PERFORM FROM sessions WHERE queue = (SELECT queue FROM queues WHERE name = _names[_n]) AND id = _ids[_n]
      AND reaped + 0 = 0 AND NOT suspected AND expires_at > clock_ms();
    _replies := _replies || FOUND;
  END LOOP;
  RETURN array_to_json(_replies);
END
$body$;
