-- Changes the settings of a queue: QueueSettings, as JSON. A setting that is absent stays, and null removes one.
-- Called by: cap-queue.sql, control.ts, limit-queue.sql, pause.sql.
CREATE FUNCTION configure(_name text, _settings jsonb) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  -- Not in the statement, which would not see a row that it makes.
  _queue int := queue_of(_name);
  _blocked float8 := _settings ->> 'blockedMs';
  _was boolean;
  _change journal := no_change(_queue);
BEGIN
  -- Before the row of the queue, as in claims by id.
  IF _settings ? 'groups' OR _settings ? 'group' THEN
    PERFORM lock_groups(_queue, _settings #>> '{group,key}', _settings ? 'groups');
  END IF;
  SELECT paused INTO _was FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
  IF _settings ? 'metrics' THEN PERFORM keep_metrics(_queue, (_settings #>> '{metrics,points}')::int); END IF;
  UPDATE queues
  SET paused = coalesce((_settings ->> 'paused')::boolean, paused),
    limited_until = CASE WHEN _blocked > 0 THEN ceil(clock_ms() + _blocked) WHEN _blocked <= 0 THEN 0 ELSE limited_until END,
    window_ends = CASE WHEN _blocked <= 0 THEN 0 ELSE window_ends END,
    max_active = CASE WHEN _settings ? 'cap' THEN (_settings #>> '{cap,maxActive}')::float8 ELSE max_active END,
    rate_max = CASE WHEN _settings ? 'rate' THEN (_settings #>> '{rate,max}')::float8 ELSE rate_max END,
    rate_ms = CASE WHEN _settings ? 'rate' THEN (_settings #>> '{rate,durationMs}')::float8 ELSE rate_ms END,
    metric_points = CASE WHEN _settings ? 'metrics' THEN (_settings #>> '{metrics,points}')::int ELSE metric_points END
  WHERE queue = _queue;
  IF _settings ? 'groups' OR _settings ? 'group' THEN PERFORM set_groups(_queue, _settings); END IF;
  IF (_settings ->> 'paused')::boolean <> _was THEN
    _change.events := 1;
    _change.body := event(CASE WHEN _was THEN 'resumed' ELSE 'paused' END, NULL);
    -- include: note
  END IF;
  RETURN 'null';
END
$body$;
