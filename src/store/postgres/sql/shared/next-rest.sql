-- Sets _due to the end of a rest, if that is sooner. Most queues have no resting group.
IF _row.grouped AND NOT _row.paused AND (
  SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1
) IS NOT NULL THEN
  _due := least(_due, rest_ends(_queue, _now));
END IF;
