-- Starts the runs of next jobs that take.sql took, and takes the jobs that it missed. It runs after the journal was written.
IF _next IS NOT NULL OR _taken < _count AND _taken < _left THEN
  IF _next IS NOT NULL THEN _rows := concat_ws(',', _rows, start_runs(_queue, _next)); END IF;
  IF _taken < _count AND _taken < _left THEN
    -- Something lies below the head, because its transaction committed late; or was changed while it was being locked; or is large.
    _rest := grant_locks(
      _queue, _session, _seq, _by, NULL, _clock, 0, _count - _taken, false, no_change(_queue), _rows, _inline, coalesce(_bytes, 0),
      true
    );
    _more := _rest._cut;
    _taken := _taken + _rest._taken;
    _rows := _rest._jobs;
    _change := _rest._change;
    -- include: note
  END IF;
END IF;
