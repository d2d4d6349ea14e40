-- Forgets the settings, blocks, windows and turns of groups. The limits of all groups stay while a session is open. The caller holds the
-- rows of the queue and of its groups.
-- Called by: forget.sql.
CREATE FUNCTION forget_groups(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _max float8;
BEGIN
  UPDATE queues SET group_max = NULL, group_rate_max = NULL, group_rate_ms = NULL
  WHERE queue = _queue AND NOT EXISTS (SELECT FROM sessions WHERE queue = _queue AND reaped = 0);
  SELECT group_max INTO _max FROM queues WHERE queue = _queue;
  UPDATE groups
  SET turn = CASE WHEN key = '' OR turn IS NOT NULL AND group_waits(_queue, key, 1) > 0 THEN 0 END,
    last_turn = CASE WHEN key = '' THEN 0 END, paused = false, max_active = NULL, rate_max = NULL, rate_ms = NULL,
    blocked_until = 0, window_ends = 0, place = key <> '' AND group_place(false, active, NULL, _max),
    rests_until = NULL
  WHERE queue = _queue;
END
$body$;
