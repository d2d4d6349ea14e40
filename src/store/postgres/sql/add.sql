-- Adds jobs.
-- _marks, _extras: see marks.ts. _dedups: the deduplication of each job, as JSON. Older versions send none of them.
-- Called by: add.ts.
CREATE FUNCTION add(
  _name text, _caller text, _seq bigint, _ids text[], _names text[], _data text[], _opts text[],
  _priorities int[], _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[],
  _marks smallint[] DEFAULT NULL, _extras text[] DEFAULT NULL, _dedups text[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := queue_of(_name);
  _last bigint;
  _reply text;
  _got record;
  _change journal;
BEGIN
  IF _caller IS NOT NULL THEN
    SELECT seq, callers.reply INTO _last, _reply FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    IF NOT FOUND THEN _last := enter_call(_queue, _caller); END IF;
    IF _seq > _last THEN
      _reply := NULL;
    ELSIF _seq < _last THEN
      -- Its caller gave up on it and went on, so the call must not be applied now.
      PERFORM refuse_straggler(_caller, _seq, _last);
    END IF;
    IF _reply IS NOT NULL THEN RETURN _reply; END IF;
    -- A transaction that a user leaves open may hold an id. The call fails soon, because other calls may wait behind it.
    IF _ids IS NOT NULL OR _dedups IS NOT NULL THEN PERFORM set_config('lock_timeout', '2s', true); END IF;
  END IF;
  IF _dedups IS NULL THEN
    _got := put_jobs(
      _queue, clock_ms(), _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras,
      no_change(_queue)
    );
  ELSE
    _got := put_unique(
      _queue, clock_ms(), _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras, _dedups
    );
  END IF;
  _change := _got._change;
  -- include: note
  _reply := _got._reply;
  IF _caller IS NOT NULL THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;
