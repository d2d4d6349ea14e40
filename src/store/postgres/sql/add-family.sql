-- Adds jobs with parents or children, in any queues, as a whole or not at all. _queues: the name of each job's queue. A refused call leaves
-- nothing behind, not even a queue; only a queue that exists remembers it.
-- In a transaction of the user, the parents and children that exist stay locked until its end.
-- Called by: add-family.ts.
-- RAISED.refusedFamily = HF004
CREATE FUNCTION add_family(
  _name text, _caller text, _seq bigint, _queues text[], _ids text[], _names text[], _data text[], _opts text[], _priorities int[],
  _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[], _shares boolean[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _isnew boolean := _queue IS NULL;
  _reply text;
BEGIN
  IF _caller IS NOT NULL AND NOT _isnew THEN
    _reply := enter_add(_queue, _caller, _seq);
    IF _reply IS NOT NULL THEN RETURN _reply; END IF;
  END IF;
  BEGIN
    IF _isnew THEN
      _queue := queue_of(_name);
      IF _caller IS NOT NULL THEN _reply := enter_add(_queue, _caller, _seq); END IF;
    END IF;
    IF _reply IS NULL THEN
      _reply := put_family(
        _queues, _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras, _shares
      );
    END IF;
  EXCEPTION WHEN SQLSTATE 'HF004' THEN
    _reply := SQLERRM;
    IF _isnew THEN RETURN _reply; END IF;
  END;
  IF _caller IS NOT NULL THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;
