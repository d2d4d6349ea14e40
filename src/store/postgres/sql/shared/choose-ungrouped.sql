-- Sets _chosen, as choose-in-turn.sql does. Most queues with groups have no other jobs.
-- States: 1 waiting.
IF _keyed OR (
  SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
) IS NOT NULL OR (
  SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head ORDER BY priority, ord LIMIT 1
) IS NOT NULL OR (
  SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1
) IS NOT NULL THEN
  -- include: skip-dead
  IF _keyed THEN
    _soon := show_freed(_queue, _head_freed, _head_keyed);
    _first := first_of_keys(_queue, _room, _head_keyed);
    _soon := _soon OR _first._soon;
  ELSE
    SELECT '{}'::text[] AS _ids INTO _first;
  END IF;
  -- include: choose-in-turn
ELSE
  SELECT 0::bigint AS jobs, 0::bigint AS plain, NULL::text[] AS ids INTO _chosen;
END IF;
