-- Forgets the settings, blocks, windows and turns of groups. The caller holds their rows.
-- Called by: forget.sql.
CREATE FUNCTION forget_groups(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE queues SET group_max = NULL, group_rate_max = NULL, group_rate_ms = NULL WHERE queue = _queue;
  UPDATE groups
  SET turn = CASE WHEN key = '' OR turn IS NOT NULL AND group_waits(_queue, key, 1) > 0 THEN 0 END,
    last_turn = CASE WHEN key = '' THEN 0 END, paused = false, max_active = NULL, rate_max = NULL, rate_ms = NULL,
    blocked_until = 0, window_ends = 0, place = key <> '', rests_until = NULL
  WHERE queue = _queue;
END
$body$;
