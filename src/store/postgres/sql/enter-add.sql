-- Locks the caller of an add. Returns the reply if the call was carried out before.
-- Called by: add-family.sql.
CREATE FUNCTION enter_add(_queue int, _caller text, _seq bigint) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _last bigint := enter_call(_queue, _caller);
BEGIN
  -- Its caller gave up on it and went on, so the call must not be applied now.
  IF _seq < _last THEN PERFORM refuse_straggler(_caller, _seq, _last); END IF;
  -- A transaction that a user leaves open may hold an id. The call fails soon, because other calls may wait behind it.
  PERFORM set_config('lock_timeout', '2s', true);
  RETURN (SELECT reply FROM callers WHERE queue = _queue AND id = _caller AND seq = _seq);
END
$body$;
