-- Changing, removing and cancelling jobs.

-- name: change_jobs
-- Changes jobs: retry, promote, another delay or priority. _step: a retry drops the step of this name and the later ones.
-- Called by: change.ts.
-- States: 1 waiting.
CREATE FUNCTION change_jobs(
  _name text, _kinds text[], _ids text[], _froms smallint[], _numbers float8[], _flags boolean[],
  _others boolean[], _step text DEFAULT NULL
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _base bigint := nextval('places');
  _locked text[];
  _statuses text[] := '{}';
  _status text;
  _one record;
  _job record;
  _keys text[];
  _change journal;
BEGIN
  -- include: lock-jobs
  FOR _one IN
    SELECT * FROM unnest(_kinds, _ids, _froms, _numbers, _flags, _others) WITH ORDINALITY c(
      kind, id, from_state, number, flag, other, n
    )
  LOOP
    SELECT ctid AS at, state, priority, lock_key INTO _job FROM jobs
    WHERE queue = _queue AND id = _one.id AND _one.id = ANY (_locked);
    _status := CASE WHEN NOT FOUND THEN 'missing' WHEN _job.state <> _one.from_state THEN 'state' ELSE 'done' END;
    IF _step IS NOT NULL AND _status = 'done' AND NOT drop_steps(_queue, _one.id, _step) THEN _status := 'noStep'; END IF;
    _statuses := _statuses || _status;
    CONTINUE WHEN _status <> 'done';
    CASE _one.kind
      WHEN 'retry' THEN PERFORM send_to_waiting(_queue, _job.state, ARRAY[_job.at], _one.flag, _one.other);
      WHEN 'promote' THEN PERFORM send_to_waiting(_queue, _job.state, ARRAY[_job.at], false, false);
      WHEN 'delay' THEN
        UPDATE jobs SET delay = _one.number, due_at = ceil(_clock + _one.number), ord = _base + _one.n
        WHERE queue = _queue AND id = _one.id;
        _change := no_change(_queue);
        _change.events := 1;
        _change.body := event('delayed', ARRAY[_one.id], json_build_object('delay', ceil(_clock + _one.number)::bigint));
        -- include: note
      ELSE
        -- A job that does not wait keeps the priority for when it does.
        UPDATE jobs
        SET priority = _one.number,
          ord = CASE WHEN NOT state + 0 <= 1 THEN ord WHEN _one.flag THEN -(_base + _one.n) ELSE _base + _one.n END
        WHERE queue = _queue AND id = _one.id;
        IF _job.state + 0 BETWEEN -1 AND 1 AND _job.lock_key IS NOT NULL THEN _keys := _keys || _job.lock_key::text; END IF;
        IF _job.state + 0 <= 1 AND (_job.priority = 0) <> (_one.number = 0) THEN
          INSERT INTO journal (queue, waiting, prioritized)
          VALUES (_queue, CASE WHEN _one.number = 0 THEN 1 ELSE -1 END, CASE WHEN _one.number = 0 THEN -1 ELSE 1 END);
        END IF;
    END CASE;
  END LOOP;
  -- Another one of the key may come first now.
  IF _keys IS NOT NULL THEN
    -- include: free-keys
  END IF;
  RETURN to_json(_statuses);
END
$body$;

-- name: remove_jobs
-- Removes jobs that are not active, and not next jobs of schedules. _children: also their children that have no other parent.
-- Called by: change.ts, part_child.
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

-- name: remove_listed
-- Removes the unlocked jobs of some lists. _children, _parent_too: see clear_lists.
-- Called by: select.ts.
CREATE FUNCTION remove_listed(
  _name text, _lists text[], _age float8, _limit int, _children boolean DEFAULT false, _parent_too boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _ids text[] := clear_lists((SELECT queue FROM queues WHERE name = _name), _lists, _age, _limit, _children, _parent_too);
BEGIN
  IF cardinality(_ids) = 0 THEN PERFORM tell_cleaned(_name, 0); END IF;
  RETURN to_json(_ids);
END
$body$;

-- name: requeue_listed
-- Moves the unlocked jobs of some lists to waiting.
-- Called by: select.ts.
CREATE FUNCTION requeue_listed(
  _name text, _list text, _age float8, _limit int, _reset_made boolean, _reset_started boolean
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _ids text[];
BEGIN
  IF _queue IS NOT NULL THEN
    _ids := send_to_waiting(
      _queue, array_position('{waiting,delayed,active,completed,failed}'::text[], _list)::smallint,
      select_listed(
        _queue, _list, (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint, _limit, false
      ), _reset_made, _reset_started
    );
    IF _ids IS NOT NULL THEN
      -- include: fold-sometimes
    END IF;
  END IF;
  RETURN to_json(coalesce(_ids, '{}'));
END
$body$;

-- name: clear_lists
-- Removes the selected jobs, and records how many. Returns their ids. _children: also their children that have no other parent.
-- _parent_too: also the parents in the queue whose last pending children they are.
-- Called by: remove_listed.
CREATE FUNCTION clear_lists(
  _queue int, _lists text[], _age float8, _limit int, _children boolean DEFAULT false, _parent_too boolean DEFAULT false
) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _rows tid[];
  _parents tid[];
  _found text[];
  _ids text[] := '{}';
  _change journal := no_change(_queue);
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _rows := select_listed(_queue, _list, _latest, _limit - cardinality(_ids), true);
    _found := ARRAY(
      SELECT id FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n
    );
    CONTINUE WHEN cardinality(_found) = 0;
    IF _children THEN PERFORM send_to_children(_queue, _found); END IF;
    IF _parent_too THEN
      _parents := last_parents(_queue, _rows);
      _rows := _rows || _parents;
      _change.parents := coalesce(_change.parents, 0) - cardinality(_parents);
    END IF;
    PERFORM drop_jobs(_queue, _rows, true);
    _ids := _ids || _found;
    CASE _list
      WHEN 'waiting' THEN _change.waiting := -cardinality(_found);
      WHEN 'prioritized' THEN _change.prioritized := -cardinality(_found);
      WHEN 'delayed' THEN _change.delayed := -cardinality(_found);
      WHEN 'completed' THEN _change.completed := -cardinality(_found);
      WHEN 'failed' THEN _change.failed := -cardinality(_found);
      ELSE _change.parents := coalesce(_change.parents, 0) - cardinality(_found);
    END CASE;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', cardinality(_ids)));
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN _ids;
END
$body$;

-- name: cancel_jobs
-- Cancels jobs by their ids. The second mention of a job that does not run finds it failed or removed.
-- Called by: change.ts.
-- States: 3 active, 4 completed, 5 failed.
CREATE FUNCTION cancel_jobs(_name text, _ids text[], _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _open text[];
  _reply text;
BEGIN
  -- include: lock-jobs
  SELECT json_agg(
      CASE WHEN j.id IS NULL THEN 'missing' WHEN j.state + 0 = 3 OR o.nth = 1 AND j.state + 0 NOT IN (4, 5) THEN 'done' ELSE 'state' END
      ORDER BY o.n
    ), array_agg(j.id ORDER BY o.n) FILTER (WHERE o.nth = 1 AND j.state + 0 NOT IN (4, 5))
  INTO _reply, _open
  FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN LATERAL (SELECT id, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON o.id = ANY (_locked);
  IF _open IS NOT NULL THEN PERFORM cancel_open(_queue, _open, _reason); END IF;
  RETURN _reply;
END
$body$;

-- name: cancel_listed
-- Cancels the jobs of some lists, the oldest of each list first. It passes over finished and cancelled jobs.
-- Called by: select.ts.
CREATE FUNCTION cancel_listed(_name text, _lists text[], _age float8, _limit int, _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _rows tid[];
  _found text[];
  _ids text[] := '{}';
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    CONTINUE WHEN _list IN ('completed', 'failed');
    _rows := CASE WHEN _list = 'active' THEN select_active(_queue, _latest, _limit - cardinality(_ids))
      ELSE select_listed(_queue, _list, _latest, _limit - cardinality(_ids), false) END;
    _found := ARRAY(
      SELECT id FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n
    );
    CONTINUE WHEN cardinality(_found) = 0;
    PERFORM cancel_open(_queue, _found, _reason);
    _ids := _ids || _found;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    -- include: fold-sometimes
  END IF;
  RETURN to_json(_ids);
END
$body$;

-- name: cancel_open
-- Cancels jobs that have not finished. Active jobs are marked, and their sessions get notices; the others fail. The caller has locked the
-- jobs.
-- Called by: cancel_jobs, cancel_listed.
-- States: 3 active.
-- MARK.cancelled = 256
CREATE FUNCTION cancel_open(_queue int, _ids text[], _reason text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  WITH held AS MATERIALIZED (
    SELECT o.n, j.at FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 3 AND marks & 256 = 0 OFFSET 0) j
  ), marked AS (
    UPDATE jobs j
    SET marks = marks | 256, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object('c', _reason)
    FROM held WHERE j.ctid = held.at RETURNING held.n, j.id, j.session, j.fence
  )
  INSERT INTO revocations (queue, session, job, fence, reason, kind)
  SELECT _queue, session, id, fence, _reason, 'cancelled' FROM marked ORDER BY n;
  PERFORM fail_open(_queue, clock_ms(), _ids, _reason);
END
$body$;

-- name: select_active
-- Locks active jobs that are not cancelled, the oldest first, as select_listed does for other lists.
-- Called by: cancel_listed.
-- States: 3 active.
-- MARK.cancelled = 256
CREATE FUNCTION select_active(_queue int, _latest bigint, _limit int) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _rows tid[] := ARRAY(
    SELECT at FROM (
      SELECT ctid AS at, added FROM jobs
      WHERE queue = _queue AND state = 3 AND marks & 256 = 0 AND coalesce(processed_on, added_at) <= _latest ORDER BY session, fence OFFSET 0
    ) j
    ORDER BY added LIMIT _limit
  );
BEGIN
  RETURN ARRAY(
    SELECT ctid FROM jobs WHERE ctid = ANY (_rows) AND state + 0 = 3 AND marks & 256 = 0 AND (xmax = 0 OR untouched(xmax))
    ORDER BY added FOR UPDATE SKIP LOCKED
  );
END
$body$;

-- name: select_listed
-- Locks the unlocked jobs of one list, the oldest first; _removing: without next jobs of schedules; _letters: dead letters alone.
-- Called by: cancel_listed, clear_lists, requeue_listed, send_listed.
-- States: -2 grouped, -1 behind, 0 keyed, 1 waiting, 2 delayed, 4 completed.
-- MARK.next = 16
-- SORTED_UP_TO = 10000: up to this many jobs, waiting and delayed jobs are sorted by age. More are taken in the order of the index:
--   otherwise emptying a queue of a million jobs in chunks would sort a million rows for each chunk.
-- The statement for waiting and delayed jobs is put together from these parts. Nothing of it comes from outside.
CREATE FUNCTION select_listed(
  _queue int, _list text, _latest bigint, _limit int, _removing boolean, _letters boolean DEFAULT false
) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _state smallint := coalesce(array_position('{waiting,delayed,active,completed,failed,waiting-children}'::text[], _list), 1);
  _sorted boolean;
  _rows tid[];
  _counts record;
BEGIN
  SELECT * INTO _counts FROM counts_of(_queue);
  IF _state >= 4 THEN
    -- Cut here and not by the query, which would go on through all that are younger.
    _rows := ARRAY(
      SELECT ctid FROM (
        SELECT ctid, coalesce(finished_on, processed_on, added_at) AS since FROM jobs
        WHERE queue = _queue AND state >= 4 AND state = _state
          AND (NOT _letters OR extras::json -> 'o' IS NOT NULL)
        ORDER BY ord LIMIT _limit
      ) j
      WHERE since <= _latest
    );
  ELSIF _list <> 'active' THEN
    _sorted := CASE _list WHEN 'waiting' THEN _counts.waiting WHEN 'prioritized' THEN _counts.prioritized ELSE _counts.delayed END <= 10000;
    EXECUTE (
      SELECT 'SELECT ARRAY(SELECT at FROM (' || string_agg(
          '(SELECT ctid AS at, added FROM jobs WHERE queue = $1 AND ' || part
            || CASE WHEN _removing THEN ' AND marks & 16 = 0' ELSE '' END
            || CASE WHEN _letters THEN ' AND extras::json -> ''o'' IS NOT NULL' ELSE '' END
            || ' AND coalesce(processed_on, added_at) <= $2 ORDER BY '
            || CASE WHEN _list = 'delayed' THEN 'due_at' ELSE 'priority' END || ', ord'
            || CASE WHEN _sorted THEN ' OFFSET 0)' ELSE ' LIMIT $3)' END, ' UNION ALL '
        ) || ') j' || CASE WHEN _sorted THEN ' ORDER BY added' ELSE '' END || ' LIMIT $3)'
      FROM unnest(
        CASE _list WHEN 'waiting' THEN ARRAY['state = 1 AND priority = 0', 'state = 0 AND priority = 0', 'state = -1 AND priority = 0',
          'state = -2 AND priority = 0']
          WHEN 'prioritized' THEN ARRAY['state = 1 AND priority > 0', 'state = 0 AND priority > 0', 'state = -1 AND priority > 0',
            'state = -2 AND priority > 0']
          ELSE ARRAY['state = 2'] END
      ) part
    ) INTO _rows USING _queue, _latest, _limit;
  ELSE
    -- Active jobs are locked, all of them.
    RETURN '{}';
  END IF;
  RETURN ARRAY(
    SELECT ctid FROM jobs
    WHERE ctid = ANY (_rows) AND greatest(state, 1) = _state AND NOT (_removing AND marks & 16 > 0)
      AND (_state <> 1 OR (priority > 0) = (_list = 'prioritized')) AND (xmax = 0 OR untouched(xmax))
    ORDER BY CASE WHEN _state >= 4 THEN ord ELSE added END FOR UPDATE SKIP LOCKED
  );
END
$body$;

-- name: tell_cleaned
-- Records the event of a removal that found nothing.
-- Called by: remove_listed.
CREATE FUNCTION tell_cleaned(_name text, _count int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _change journal := no_change(_queue);
BEGIN
  IF _queue IS NOT NULL THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', _count));
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN '[]';
END
$body$;

-- name: revoke_jobs
-- Takes locks of jobs away. The jobs go back without counting a stall.
-- Called by: change.ts.
-- States: 3 active.
CREATE FUNCTION revoke_jobs(_name text, _ids text[], _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _held record;
  _reply text;
BEGIN
  -- include: lock-jobs
  SELECT array_agg(id) AS ids, array_agg(session) AS sessions, array_agg(fence) AS fences INTO _held
  FROM (
    SELECT * FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      LATERAL (SELECT session, fence FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 3 OFFSET 0) j
    WHERE o.id = ANY (_locked) ORDER BY n
  ) held;
  -- The second mention of an active job finds it waiting.
  SELECT json_agg(CASE WHEN j.id IS NULL THEN 'missing' WHEN o.nth = 1 AND j.state = 3 THEN 'done' ELSE 'state' END ORDER BY o.n)
  INTO _reply
  FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN LATERAL (SELECT id, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
    ON o.id = ANY (_locked);
  IF _held.ids IS NOT NULL THEN
    INSERT INTO revocations (queue, session, job, fence, reason)
    SELECT _queue, session, id, fence, _reason FROM unnest(_held.sessions, _held.ids, _held.fences) h(session, id, fence);
    PERFORM hand_back(_queue, clock_ms(), _held.ids, NULL);
  END IF;
  RETURN _reply;
END
$body$;

-- part: lock-jobs
-- Locks the jobs of _ids that exist, in the order of their ids. Sets _locked, their ids. A job that is added later is missing for this
-- call: another call may move it at any time.
_locked := ARRAY(
  SELECT j.id FROM (SELECT DISTINCT id FROM unnest(_ids) id ORDER BY id) o,
    LATERAL (SELECT id FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j
);
