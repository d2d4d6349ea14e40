-- Takes the next jobs after complete.sql, and writes the journal. If jobs could not be completed, it settles by the ordinary path.
IF _finished < _many THEN
  -- The finished jobs are recorded here; the general path then finds them done.
  -- include: note-completed
  UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
  -- include: settle-in-full
END IF;
-- include: take
INSERT INTO journal (queue, waiting, active, completed, finishes, events, body, minute, completions)
VALUES (
  _queue, -_taken, _taken - _many, _many, _many, _many + _taken,
  concat_ws(',', event('completed', _ids, json_build_object('returnvalue', _texts)), _active), _minute, _many
);
-- include: take-rest
-- include: fold-sometimes
