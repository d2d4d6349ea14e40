-- Takes jobs by their ids, and adds up what they change.
-- States: 2 delayed.
_got := grant_by_id(_queue, _session, _seq, _ids, _count, _by, _timed, _clock, _change, _inline);
_taken := _got._taken;
_change := _got._change;
_jobs := _got._jobs;
_more := _got._cut;
_left := _look.waiting + _change.waiting + _change.prioritized;
IF _due <= _now THEN _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1); END IF;
