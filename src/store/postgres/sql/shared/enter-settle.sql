-- Locks the caller. Sets _results if the call was carried out before.
SELECT seq, callers.reply INTO _last, _results FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
IF NOT FOUND THEN _last := enter_call(_queue, _caller); END IF;
IF _seq > _last THEN
  _results := NULL;
ELSIF _seq < _last THEN
  -- Its caller gave up on it and went on, so the call must not be applied now.
  PERFORM refuse_straggler(_caller, _seq, _last);
END IF;
