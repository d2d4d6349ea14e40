-- Moves unlocked jobs of some states to waiting.
-- Called by: older versions.
-- States: 1 waiting, 3 active.
CREATE FUNCTION requeue(_name text, _states smallint[], _age float8, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _state smallint;
  _moved int := 0;
BEGIN
  FOREACH _state IN ARRAY _states LOOP
    CONTINUE WHEN _state IN (1, 3);
    _moved := _moved + json_array_length(
      requeue_listed(
        _name, ('{waiting,delayed,active,completed,failed}'::text[])[_state], _age, _limit - _moved, false, false
      )::json
    );
  END LOOP;
  RETURN _moved;
END
$body$;
