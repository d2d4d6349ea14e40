-- Claims the next jobs for the session of a settle.
_got := take(
  _queue, _session, _claim_seq, _count, _job_ids, _by, _timed, _max, _window, _clock, _alive, _last, _change, _inline
);
_change := _got._change;
_claimed := _got._reply;
IF _got._taken > 0 AND NOT _same_call THEN
  UPDATE callers SET seq = _claim_seq, used_at = clock_ms(), reply = NULL WHERE queue = _queue AND id = _session;
END IF;
