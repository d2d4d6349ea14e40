-- Takes up to _room jobs, and adds up what they change.
-- SOON_MS = 5: when to retry if other transactions held what might have been claimed, in ms.
IF _row.grouped THEN
  _got := grant_groups(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline, _look.keyed);
  _soon := _got._soon;
ELSIF _look.keyed THEN
  _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline);
  _soon := _got._soon;
ELSE
  _got := grant_locks(
    _queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _look.in_line, _change, NULL, _inline
  );
END IF;
_taken := _got._taken;
_left := _look.waiting + (_got._change).waiting + (_got._change).prioritized;
_more := _got._cut;
IF _taken < _room AND _left > 0 AND NOT _more AND (NOT _row.grouped OR random() < 0.1) THEN
  -- Something lies below the head, because its transaction committed late; or was changed while it was being locked. In a queue with groups
  -- jobs may wait for places, so only one in ten claims looks for that.
  _got := grant_locks(
    _queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, false, _got._change, _got._jobs, _inline, _got._bytes,
    true
  );
  _more := _got._cut;
  _taken := _taken + _got._taken;
  _left := _left - _got._taken;
END IF;
_change := _got._change;
_jobs := _got._jobs;
-- One in ten claims that find too little also searches the ranges that seemed dead: a row may have been committed there late.
IF _taken < _room AND _left > 0 AND NOT _more
    AND (random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue)) THEN
  _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, _change, _inline, true);
  _taken := _taken + _got._taken;
  _left := _left - _got._taken;
  _change := _got._change;
  _jobs := concat_ws(',', _jobs, _got._jobs);
  _more := _got._cut;
END IF;
IF _soon AND _taken < _room THEN _due := least(_due, _now + 5); END IF;
