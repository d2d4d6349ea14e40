-- Removes jobs that are not active, and not next jobs of schedules. _children: also their children that have no other parent.
-- Called by: change.ts, part-child.sql.
-- States: 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
-- MARK.next = 16
CREATE FUNCTION remove_jobs(_name text, _ids text[], _children boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _change journal := no_change(_queue);
  _locked text[];
  _reply text;
  _gone record;
BEGIN
  -- include: lock-jobs
  SELECT json_agg(
    CASE WHEN j.id IS NULL THEN 'missing' WHEN j.state = 3 THEN 'locked' WHEN j.marks & 16 > 0 THEN 'scheduled'
      WHEN o.nth > 1 THEN 'missing' ELSE 'done' END
    ORDER BY o.n
  )
  INTO _reply
  FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON o.id = ANY (_locked);
  SELECT array_agg(at) AS rows, array_agg(id) AS ids,
    array_agg((ARRAY['waiting', 'delayed', 'active', 'completed', 'failed', 'waiting-children'])[greatest(state, 1)]) AS states,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS waiting,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority > 0) AS prioritized, count(*) FILTER (WHERE state = 2) AS delayed,
    count(*) FILTER (WHERE state = 4) AS completed, count(*) FILTER (WHERE state = 5) AS failed,
    nullif(count(*) FILTER (WHERE state = 6), 0) AS parents
  INTO _gone
  FROM (
    SELECT j.* FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY u(id, n) GROUP BY id) o,
      LATERAL (
        SELECT ctid AS at, id, state, priority FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND state <> 3 AND marks & 16 = 0 OFFSET 0
      ) j
    WHERE o.id = ANY (_locked) ORDER BY o.n
  ) j;
  IF _gone.rows IS NOT NULL THEN
    _change.waiting := -_gone.waiting;
    _change.prioritized := -_gone.prioritized;
    _change.delayed := -_gone.delayed;
    _change.completed := -_gone.completed;
    _change.failed := -_gone.failed;
    _change.parents := -_gone.parents;
    _change.events := cardinality(_gone.ids);
    _change.body := event('removed', _gone.ids, json_build_object('prev', _gone.states));
    IF _children THEN PERFORM send_to_children(_queue, _gone.ids); END IF;
    PERFORM drop_jobs(_queue, _gone.rows, true);
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;
