-- Puts the job of the slot _n, and removes the next job that it replaces. If the id is taken, nothing else changes.
IF _jobs[_n] = _row.next_job AND NOT _started THEN
  _change := dismiss(_queue, _row.next_job, true, no_change(_queue));
  -- include: note
END IF;
_got := put_jobs(
  _queue, _clock, _jobs[_n:_n], _names[_n:_n], _data[_n:_n], _opts[_n:_n], _priorities[_n:_n], _delays[_n:_n], _lifos[_n:_n],
  _timestamps[_n:_n], CASE WHEN _keys[_n] IS NOT NULL THEN _keys[_n:_n] END, _marks[_n:_n], _extras[_n:_n], no_change(_queue)
);
IF _got._made IS NOT NULL THEN
  _status := 'taken';
ELSIF _row.next_job <> _jobs[_n] THEN
  -- Recorded first: the events of the removal come before those of the new job.
  _change := dismiss(_queue, _row.next_job, NOT _started, no_change(_queue));
  -- include: note
END IF;
_change := _got._change;
-- include: note
