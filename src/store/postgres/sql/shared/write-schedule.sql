-- Applies the change _n to the schedule _row, whose slot has been put. A next job that the slot did not replace is removed, or becomes an
-- ordinary job.
-- States: 2 delayed.
IF _jobs[_n] IS NULL AND _row.next_job IS NOT NULL AND NOT (_kinds[_n] = 'pause' AND coalesce(_started, false)) THEN
  _change := dismiss(
    _queue, _row.next_job,
    NOT _started AND (
      _kinds[_n] <> 'remove' OR (SELECT state + 0 = 2 FROM jobs WHERE queue = _queue AND id = _row.next_job)
    ), no_change(_queue)
  );
  -- include: note
END IF;
IF _kinds[_n] = 'remove' THEN
  DELETE FROM schedules WHERE queue = _queue AND id = _ids[_n];
  _row := NULL;
ELSE
  UPDATE schedules
  SET version = CASE WHEN version = 0 THEN floor(_clock)::bigint ELSE version + 1 END, spec = coalesce(_specs[_n], spec),
    serial = coalesce(_serials[_n], serial),
    state = CASE WHEN _kinds[_n] = 'pause' THEN 'paused' WHEN _jobs[_n] IS NULL THEN 'ended' ELSE 'running' END,
    at = CASE WHEN _keeps THEN at ELSE coalesce(_ats[_n], at) END,
    count = CASE WHEN _keeps THEN count ELSE coalesce(_counts[_n], count) END
      - CASE WHEN _kinds[_n] = 'pause' AND NOT _started THEN 1 ELSE 0 END,
    next_job = CASE WHEN _keeps OR _kinds[_n] = 'pause' AND _started THEN next_job ELSE _jobs[_n] END
  WHERE queue = _queue AND id = _ids[_n] RETURNING * INTO _row;
END IF;
