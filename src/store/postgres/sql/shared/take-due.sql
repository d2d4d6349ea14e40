-- Moves delayed jobs that are due to waiting, and looks again at what waits then.
-- States: 2 delayed.
IF _alive AND _seq > _last AND _ids IS NULL AND _count > 0 AND _due <= _now THEN
  -- Whether there is room or not: a due job that stayed delayed would look claimable by time alone.
  _change := promote_due(_queue, _now, _change);
  _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
  _look.keyed :=
    -- include: any-keyed-alive
  ;
  _look.in_line := false;
  _left := _look.waiting + _change.waiting + _change.prioritized;
END IF;
