-- Locks the callers of a settle and of its claim, and the session, before any job is locked, as everywhere. Sets _remembered and _results if
-- the call was carried out before.
IF _caller IS NOT NULL THEN
  -- include: enter-settle
  _remembered := _results IS NOT NULL;
END IF;
IF _session IS NOT NULL THEN
  -- include: lock-session
  IF _alive AND _session IS DISTINCT FROM _caller THEN _last := enter_call(_queue, _session); END IF;
END IF;
