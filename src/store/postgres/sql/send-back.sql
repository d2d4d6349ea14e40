-- Sends locked letters to the queue that their jobs go back to, and removes them. Returns their ids. Jobs that are no letters stay.
-- Called by: send-letters.sql, send-listed.sql.
-- States: 1 waiting, 2 delayed, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.letter = 128
CREATE FUNCTION send_back(_queue int, _rows tid[], _to text) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _change journal := no_change(_queue);
  _sum record;
BEGIN
  WITH letters AS MATERIALIZED (
    SELECT at, n, j.*, j.extras::json -> 'o' AS origin FROM unnest(_rows) WITH ORDINALITY r(at, n),
      LATERAL (SELECT * FROM jobs WHERE ctid = at OFFSET 0) j
    WHERE j.extras::json -> 'o' IS NOT NULL
  ), sent AS (
    INSERT INTO outbox (queue, to_queue, body)
    SELECT _queue, _to, json_build_object(
      'kind', 'send', 'ids', ARRAY[origin ->> 'id', id, NULL], 'name', name, 'data', data, 'opts', opts, 'timestamp', timestamp,
      'priority', origin -> 'priority', 'key', origin ->> 'lockKey', 'marks', CASE WHEN origin ->> 'group' IS NULL THEN 128 ELSE 128 + 1 END,
      'extras', json_strip_nulls(json_build_object('l', origin ->> 'deadLetter', 'g', origin ->> 'group'))
    )::text
    FROM letters ORDER BY n
  )
  SELECT array_agg(at ORDER BY n) AS rows, array_agg(id ORDER BY n) AS ids,
    array_agg((ARRAY['waiting', 'delayed', 'active', 'completed', 'failed', 'waiting-children'])[greatest(state, 1)] ORDER BY n) AS states,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS waiting,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority > 0) AS prioritized, count(*) FILTER (WHERE state = 2) AS delayed,
    count(*) FILTER (WHERE state = 4) AS completed, count(*) FILTER (WHERE state = 5) AS failed,
    nullif(count(*) FILTER (WHERE state = 6), 0) AS parents
  INTO _sum FROM letters;
  IF _sum.rows IS NULL THEN RETURN '{}'; END IF;
  PERFORM set_config('holdfast.sent', '1', true);
  _change.waiting := -_sum.waiting;
  _change.prioritized := -_sum.prioritized;
  _change.delayed := -_sum.delayed;
  _change.completed := -_sum.completed;
  _change.failed := -_sum.failed;
  _change.parents := -_sum.parents;
  _change.events := cardinality(_sum.ids);
  _change.body := event('removed', _sum.ids, json_build_object('prev', _sum.states));
  PERFORM drop_jobs(_queue, _sum.rows, true);
  PERFORM relate(ARRAY[_queue], ARRAY[_to]);
  -- include: note
  RETURN _sum.ids;
END
$body$;
