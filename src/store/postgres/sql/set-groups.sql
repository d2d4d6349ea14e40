-- Changes the limits of all groups, or the settings of one group: `groups` and `group` of QueueSettings. The caller has locked the rows of
-- these groups before that of the queue, as claims by id do.
-- Called by: configure.sql.
CREATE FUNCTION set_groups(_queue int, _settings jsonb) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _one jsonb := _settings -> 'group';
  _blocked float8 := _one ->> 'blockedMs';
  _row queues;
BEGIN
  IF _settings ? 'groups' THEN
    UPDATE queues
    SET group_max = (_settings #>> '{groups,maxActive}')::float8, group_rate_max = (_settings #>> '{groups,rate,max}')::float8,
      group_rate_ms = (_settings #>> '{groups,rate,durationMs}')::float8
    WHERE queue = _queue;
  END IF;
  IF _settings ? 'group' THEN
    UPDATE groups
    SET paused = coalesce((_one ->> 'paused')::boolean, paused),
      max_active = CASE WHEN _one ? 'maxActive' THEN (_one ->> 'maxActive')::float8 ELSE max_active END,
      rate_max = CASE WHEN _one ? 'rate' THEN (_one #>> '{rate,max}')::float8 ELSE rate_max END,
      rate_ms = CASE WHEN _one ? 'rate' THEN (_one #>> '{rate,durationMs}')::float8 ELSE rate_ms END,
      blocked_until = CASE WHEN _blocked > 0 THEN ceil(_clock + _blocked) WHEN _blocked <= 0 THEN 0 ELSE blocked_until END,
      window_ends = CASE WHEN _blocked <= 0 THEN 0 ELSE window_ends END
    WHERE queue = _queue AND key = _one ->> 'key';
  END IF;
  SELECT * INTO _row FROM queues WHERE queue = _queue;
  UPDATE groups
  SET place = group_place(paused, active, max_active, _row.group_max),
    rests_until = group_rest(blocked_until, window_ends, window_used, rate_max, _row.group_rate_max, floor(_clock)::bigint)
  WHERE queue = _queue AND key <> '' AND (_settings ? 'groups' OR key = _one ->> 'key');
END
$body$;
