-- Hands back the jobs of a dead session, the newest first: when the rest follows in later bites, the oldest will be in front.
-- States: 3 active.
SELECT array_agg(id ORDER BY fence) AS ids, array_agg(_session.max_stalls) AS limits, array_agg(loss_of(_session)) AS losses
INTO _dead
FROM (
  SELECT id, fence FROM jobs
  WHERE queue = _queue AND state = 3 AND session = _session.id AND ends_at IS NULL AND (xmax = 0 OR untouched(xmax))
    AND (marks = 0 OR entry_free(_queue, id, extras))
  ORDER BY fence DESC LIMIT _left FOR UPDATE SKIP LOCKED
) locked;
IF _dead.ids IS NOT NULL THEN
  _left := _left - cardinality(_dead.ids);
  SELECT * INTO _dead FROM hand_back(_queue, _clock, _dead.ids, _dead.limits, _dead.losses);
  _stalled := _stalled || _dead.stalled;
  _failed := _failed || _dead.failed;
  _stalled_by := _stalled_by || _dead.stalled_by;
  _failed_by := _failed_by || _dead.failed_by;
END IF;
