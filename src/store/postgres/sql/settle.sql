-- Settling jobs: the outcomes of runs.

-- name: settle
-- Settles jobs, and claims the next ones in the same call.
-- Called by: settle.ts, settle_children, settle_groups, settle_plain, settle_trimmed.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
-- _within: the call runs in a transaction of the user, which may stay open. So it holds no rows that calls for other jobs need, if it can:
-- it leaves the row of the queue alone, and notes the places that come free in groups.
-- WEIGH_EVERY = 524288: the bytes of the log are summed once in about this many bytes of new events: the sum takes 3 ms over 10,000 rows.
CREATE FUNCTION settle(
  _name text, _caller text, _seq bigint, _kinds text[], _ids text[], _owners text[], _fences bigint[],
  _texts text[], _stacks text[], _delays float8[], _lifos boolean[], _keep_counts float8[],
  _keep_ages float8[], _session text, _claim_seq bigint, _count int, _job_ids text[], _by text, _timed float8,
  _max float8, _window float8, _inline int, _within boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int;
  _capped boolean;
  _grouped boolean;
  _minute int;
  _results text;
  _remembered boolean := false;
  _same_call boolean := coalesce(_caller = _session AND _seq = _claim_seq, false);
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
  _claimed text;
  _freed boolean := false;
BEGIN
  SELECT queue, max_active IS NOT NULL, grouped, CASE WHEN metric_points IS NOT NULL THEN _now / 60000 END
  INTO _queue, _capped, _grouped, _minute FROM queues WHERE name = _name;
  IF _queue IS NULL THEN
    _results := repeat('m', cardinality(_ids));
    IF _session IS NOT NULL THEN _claimed := claim_reply(NULL, false, false, 0, NULL, 0, true); END IF;
  ELSE
    -- Locks the callers of a settle and of its claim, and the session, before any job is locked, as everywhere. Sets _remembered and
    -- _results if the call was carried out before.
    IF _caller IS NOT NULL THEN
      -- Locks the caller. Sets _results if the call was carried out before.
      SELECT seq, callers.reply INTO _last, _results FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
      IF NOT FOUND THEN _last := enter_call(_queue, _caller); END IF;
      IF _seq > _last THEN
        _results := NULL;
      ELSIF _seq < _last THEN
        -- Its caller gave up on it and went on, so the call must not be applied now.
        PERFORM refuse_straggler(_caller, _seq, _last);
      END IF;
      _remembered := _results IS NOT NULL;
    END IF;
    IF _session IS NOT NULL THEN
      -- include: lock-session
      IF _alive AND _session IS DISTINCT FROM _caller THEN _last := enter_call(_queue, _session); END IF;
    END IF;
    _change := no_change(_queue, _minute);
    -- Locks the jobs of the outcomes and those that are claimed by id, all at once, in one order.
    IF _job_ids IS NOT NULL THEN
      PERFORM FROM (SELECT DISTINCT id FROM unnest(_ids || _job_ids) id ORDER BY id) o,
        LATERAL (SELECT FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j;
    END IF;
    IF NOT _remembered THEN
      _got := carry_out(
        _queue, _clock, _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages, _change,
        _grouped AND _job_ids IS NULL AND NOT _within
      );
      _change := _got._change;
      _results := _got._results;
      _freed := _got._freed;
    END IF;
    IF _session IS NOT NULL THEN
      -- Claims the next jobs for the session of a settle.
      _got := take(
        _queue, _session, _claim_seq, _count, _job_ids, _by, _timed, _max, _window, _clock, _alive, _last, _change, _inline
      );
      _change := _got._change;
      _claimed := _got._reply;
      IF _got._taken > 0 AND NOT _same_call THEN
        UPDATE callers SET seq = _claim_seq, used_at = clock_ms(), reply = NULL WHERE queue = _queue AND id = _session;
      END IF;
    END IF;
    -- After the claim, which would take its own number for that of a call that was carried out before.
    IF _caller IS NOT NULL AND NOT _remembered THEN
      UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _results WHERE queue = _queue AND id = _caller;
    END IF;
    -- include: note
    IF NOT _within AND random() < 0.03125 + coalesce(octet_length(_change.body), 0) / 524288.0 THEN
      PERFORM try_fold(_queue);
    END IF;
  END IF;
  RETURN '{"results":"' || _results || '","room":' || (_freed OR coalesce(_capped, false))
    || CASE WHEN _grouped THEN ',"grouped":true' ELSE '' END || ',"claimed":' || coalesce(_claimed, 'null')
    || CASE WHEN has_sent() THEN ',"sent":true}' ELSE '}' END;
END
$body$;

-- name: settle_plain
-- The fast path of most settles: completed jobs that are plain and stay, and a claim by their own session in a queue that is not
-- paused, limited or capped. It is one function that calls no other, under the settings of the connection (sql.ts). If the
-- outcomes or the queue need more, it calls `settle`, which must then find everything as if this attempt had never happened.
-- For one job the server takes 225 µs here and 335 µs in `settle` (without network and sync): calling a function from another one, and
-- starting each statement, costs more than most statements do.
-- Gain: without it, a job takes 1.25 × the processor time at concurrency 10 (node bench/fast-paths.mjs settle_plain).
-- Called by: settle.ts.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION settle_plain(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text,
  _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  -- include: keep-all
  -- include: fast-settle-variables
BEGIN
  -- include: enter-fast-settle
  -- include: settle-look
  -- include: complete
  -- include: take-after-settle
  RETURN '{"results":"' || repeat('d', _many) || '","room":false,"plain":true,"claimed":'
    || claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone) || '}';
END
$body$;

-- name: settle_trimmed
-- The same as settle_plain for jobs whose options remove finished jobs. _keep_counts and _keep_ages are the same for all jobs of the
-- call. Jobs of which none is kept are deleted at once; if they have a log, they take the ordinary path.
-- Gain: without it, a job that is removed takes 1.35 × the processor time at concurrency 10, and one of which the last 1000 stay 1.22 ×
-- (node bench/fast-paths.mjs settle_trimmed).
-- Called by: settle.ts.
CREATE FUNCTION settle_trimmed(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text, _inline int,
  _keep_counts float8[], _keep_ages float8[]
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  -- include: fast-settle-variables
BEGIN
  -- include: enter-fast-settle
  -- include: settle-look
  IF _keep_counts[1] = 0 THEN
    -- The same as `complete`, but deletes the jobs. The ordinary path would take the deleted jobs for missing ones. So if only some are
    -- deleted, because another transaction has just written to the others, the call is undone, and its caller repeats it.
    -- States: 3 active.
    -- COLLISION = 40001
    IF _many = 1 THEN
      DELETE FROM jobs j
      WHERE j.queue = _queue AND j.id = _ids[1] AND j.state + 0 = 3 AND j.session = _session AND j.fence = _fences[1]
        AND j.log_next = 0 AND
        -- include: plain
      ;
      GET DIAGNOSTICS _finished = ROW_COUNT;
    ELSE
      WITH outcomes AS (
        -- include: outcomes-by-id
      ), o AS MATERIALIZED (
        SELECT o.fence, held.at FROM outcomes o,
          LATERAL (
            SELECT ctid AS at FROM jobs j
            WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence
              AND j.log_next = 0 AND
              -- include: plain
            OFFSET 0
          ) held
      )
      DELETE FROM jobs j
      USING o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session
        AND j.fence = o.fence AND j.log_next = 0 AND
        -- include: plain
      ;
      GET DIAGNOSTICS _finished = ROW_COUNT;
      IF _finished BETWEEN 1 AND _many - 1 THEN RAISE EXCEPTION 'A job was changed meanwhile.' USING ERRCODE = '40001'; END IF;
    END IF;
    _gone := _many;
  ELSE
    -- include: complete
    IF _finished = _many THEN _gone := retain(_queue, 4::smallint, _many, _keep_counts[1], _clock - _keep_ages[1]); END IF;
  END IF;
  -- include: take-after-settle
  RETURN '{"results":"' || repeat('d', _many) || '","room":false,"plain":true,"claimed":'
    || claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone) || '}';
END
$body$;

-- name: settle_children
-- The same as settle_plain for queues that have children of other jobs: a child that completes writes the message to its parents in the
-- same statement.
-- Gain: without it, a child takes 1.24 × the processor time at concurrency 10 (node bench/fast-paths.mjs settle_children).
-- Called by: settle.ts.
CREATE FUNCTION settle_children(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text, _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _sent boolean;
  -- include: keep-all
  -- include: fast-settle-variables
BEGIN
  -- include: enter-fast-settle
  -- include: settle-look
  -- The same as `complete` for queues with children. Children are completed too. Sets _sent: whether it wrote messages to parents. The
  -- numbers of the messages are drawn when all jobs are written, and so locked.
  -- States: 3 active.
  -- MARK.child = 2
  _base := nextval('places');
  WITH outcomes AS (
    -- include: outcomes-by-id
  ), o AS MATERIALIZED (
    SELECT o.*, held.at FROM outcomes o,
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND j.marks IN (0, 2)
          AND j.lock_key IS NULL
        OFFSET 0
      ) held
  ), moved AS (
    UPDATE jobs j
    SET ord = _base + o.n, returnvalue = o.said,
      -- include: completed
    FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence
      AND j.marks IN (0, 2) AND j.lock_key IS NULL
    RETURNING o.n, o.id, o.said, CASE WHEN j.marks = 2 THEN j.extras::json -> 'p' END AS parents
  ), sent AS (
    INSERT INTO outbox (queue, to_queue, body)
    SELECT _queue, p ->> 'queue', child_message(p ->> 'id', json_agg(child_item(m.id, 'processed', m.said, NULL, NULL)))
    FROM moved m, json_array_elements(m.parents) p GROUP BY p ->> 'queue', p ->> 'id' RETURNING queue
  )
  SELECT array_agg(n ORDER BY n), count(*), EXISTS (SELECT FROM sent) INTO _done, _finished, _sent FROM moved;
  IF _sent THEN PERFORM set_config('holdfast.sent', '1', true); END IF;
  -- include: take-after-settle
  RETURN '{"results":"' || repeat('d', _many) || '","room":false,"plain":true' || CASE WHEN _sent THEN ',"sent":true' ELSE '' END
    || ',"claimed":' || claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone) || '}';
END
$body$;

-- name: settle_groups
-- The fast path of most settles in queues with groups: completed jobs of groups, or plain ones, that stay, and a claim by their own session
-- in a queue that is not paused, limited or capped, where only jobs of groups wait, and no group has a rate or rests. It works as
-- settle_plain does. The places that come free and the turns that are taken are one write to each group.
-- Gain: without it, a job takes 1.26 × the processor time at concurrency 10 (node bench/fast-paths.mjs settle_groups).
-- Called by: settle.ts.
CREATE FUNCTION settle_groups(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text, _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _many int := cardinality(_ids);
  _queue int;
  -- The variables of settle_groups.
  _look record;
  _ring record;
  _wrote record;
  _base bigint;
  _done bigint[];
  _finished int;
  _minute int;
  _groups text[];
  _timed float8;
  _jobs text;
  _all int := 0;
  _taken int := 0;
  _plain int;
  _rows text;
  _next text[];
  _body text;
  _bytes bigint;
  _used bigint := 0;
  _cut boolean := false;
  _took text[];
  _soon boolean := false;
  _room boolean := false;
  _change journal;
  -- include: keep-all
BEGIN
  -- include: enter-fast-settle
  -- Sets _look: how many jobs wait, when the first delayed job is due, whether something is undone, whether groups have notes, the limit of
  -- all groups, the minute of completed jobs, and whether the fast path applies: then only jobs of groups wait.
  -- States: 1 waiting.
  SELECT q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting,
    -- include: first-due
    AS due,
    -- include: any-undone
    AS undone, (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL AS noted,
    q.group_max, CASE WHEN q.metric_points IS NOT NULL THEN _now / 60000 END AS minute, q.grouped AND q.group_rate_max IS NULL AND
    -- include: unlimited
    AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL
    AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= q.head_waiting ORDER BY ord LIMIT 1) IS NULL
    AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1) IS NULL
    AND (SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1) IS NULL AND NOT
    -- include: any-keyed
    AS fits
  INTO _look
  FROM sessions s, queues q,
    -- include: journal-sums
  WHERE s.queue = _queue AND s.id = _session AND
    -- include: undoubted
    AND q.queue = _queue FOR KEY SHARE OF s;
  IF _look.fits IS NOT TRUE OR _look.due <= _now THEN
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  -- include: complete-in-groups
  _minute := _look.minute;
  -- After the jobs: a claim by id waits for groups while it holds jobs.
  IF _look.noted THEN _soon := count_groups(_queue, _count); END IF;
  -- include: lock-ring
  IF _finished < _many OR _ring.rated THEN
    -- The finished jobs are recorded here; the general path then finds them done.
    -- include: note-completed
    IF _groups IS NOT NULL THEN PERFORM note_groups(_queue, _groups, NULL); END IF;
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  IF _ring.near THEN
    _room := free_places(_queue, _groups);
    _groups := NULL;
    -- include: lock-ring
  END IF;
  _change := ROW (
    _queue, 0, 0, 0, 0, -_many, _many, 0, _many, _many, event('completed', _ids, json_build_object('returnvalue', _texts)), _minute,
    _many, 0, NULL
  )::journal;
  -- Takes turns until there are enough jobs, or none is found. If other transactions hold groups or jobs, the claim should be retried soon.
  -- SOON_MS = 5
  LOOP
    _taken := 0;
    IF _ring.many > 0 THEN
      -- Takes jobs of the groups of _ring: as many of each as turns come to it if all have enough, round by round in the order of the ring.
      -- If a group has fewer, the turns that it leaves come after all of these, so the claim goes on with them afterwards. In a statement
      -- after the locks of the groups: a change of the limits holds them too. Sets _took, if it got too few: the groups of the jobs.
      -- States: -2 grouped, 0 keyed, 3 active.
      -- MARK.key = 1
      WITH waiting AS (
        SELECT at, size FROM (
          SELECT j.at, j.size, row_number() OVER (PARTITION BY m.n ORDER BY j.priority, j.ord) AS round, m.n
          FROM queues q, unnest(_ring.keys, _ring.active, _ring.max_active) WITH ORDINALITY m(key, active, max_active, n),
            LATERAL (
              SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
              WHERE queue = _queue AND lock_key = m.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
                AND (xmax = 0 OR untouched(xmax))
              ORDER BY priority, ord LIMIT greatest(
                0, least(coalesce(m.max_active, q.group_max) - m.active, (_ring.asked + _ring.many - m.n) / _ring.many)
              )::bigint FOR UPDATE SKIP LOCKED
            ) j
          WHERE q.queue = _queue
        ) s
        ORDER BY round, n
      )
      -- include: grant
      _took := NULL;
      IF _taken > 0 AND _taken < _ring.asked THEN
        _took := ARRAY(
          SELECT extras::json ->> 'g' FROM jobs
          WHERE queue = _queue AND state = 3 AND session = _session AND fence > _ring.fence AND claim_seq = _seq AND marks & 1 > 0
        );
      END IF;
      _all := _all + _taken;
      _used := _used + _bytes;
    END IF;
    IF _ring.many > 0 OR _groups IS NOT NULL THEN
      -- Writes what a call has done to groups: the places of completed jobs (_groups) come free, and the groups of _ring, whose rows are
      -- locked, have had their turns. If all jobs were found, each group has those that settle_groups looked for. A group that has no
      -- waiting job left goes out of line. The row '' gets the number of the last turn, unless another claim is about to write it. Places
      -- in rows that other transactions hold become notes, as in free_places. Sets _wrote: how many groups changed their numbers, whether
      -- one may have a place that had none, and the groups that were written.
      -- States: -2 grouped, 0 keyed.
      WITH o AS MATERIALIZED (
        SELECT key COLLATE "C" AS key, sum(took)::int AS took, sum(freed)::int AS freed, max(n) AS n FROM (
          SELECT key, CASE WHEN _taken = _ring.asked THEN (_ring.asked + _ring.many - n) / _ring.many ELSE 0 END AS took, 0 AS freed, n
          FROM unnest(_ring.keys) WITH ORDINALITY r(key, n)
          UNION ALL
          SELECT key, 1, 0, NULL FROM unnest(_took) key
          UNION ALL
          SELECT key, 0, 1, NULL FROM unnest(_groups) key
          UNION ALL
          SELECT '', 0, 0, NULL WHERE _taken > 0
        ) done GROUP BY 1
      ), held AS MATERIALIZED (
        SELECT o.*, g.at, g.turn, g.place, _ring.base + (o.took - 1) * _ring.many + o.n AS number FROM o,
          LATERAL (
            SELECT ctid AS at, turn, place FROM groups g
            WHERE g.queue = _queue AND g.key = o.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
          ) g
      ), written AS (
        UPDATE groups g
        SET active = g.active + held.took - held.freed,
          turn = CASE WHEN held.n IS NULL THEN g.turn
            WHEN (
              SELECT ord FROM jobs WHERE queue = _queue AND lock_key = held.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
              ORDER BY priority, ord LIMIT 1
            ) IS NULL THEN NULL
            WHEN held.took = 0 THEN g.turn ELSE held.number END,
          last_turn = CASE WHEN held.key = '' THEN greatest(g.last_turn, (SELECT max(number) FROM held WHERE took > 0)) END,
          place = CASE WHEN held.n IS NULL AND (g.place OR held.key = '') THEN g.place
            ELSE group_place(g.paused, g.active + held.took - held.freed, g.max_active, (SELECT group_max FROM queues WHERE queue = _queue)) END
        FROM held WHERE g.ctid = held.at
        RETURNING held.key, held.freed, held.freed > 0 AND NOT held.place AS shown, held.turn IS DISTINCT FROM g.turn AS moved
      )
      SELECT count(*) FILTER (WHERE moved) AS moved, bool_or(shown) AS shown, sum(freed) AS freed, array_agg(key) FILTER (WHERE freed > 0) AS keys
      INTO _wrote FROM written;
      IF _groups IS NOT NULL THEN
        _room := _room OR _wrote.shown IS TRUE;
        IF _wrote.freed IS DISTINCT FROM cardinality(_groups) THEN
          PERFORM note_groups(_queue, ARRAY(SELECT key FROM unnest(_groups) key WHERE (key = ANY (_wrote.keys)) IS NOT TRUE), NULL);
          _room := true;
        END IF;
        _groups := NULL;
      END IF;
    END IF;
    EXIT WHEN _all = _count OR _cut OR _ring.many = 0;
    EXIT WHEN _wrote.moved = 0;
    -- include: lock-ring
    EXIT WHEN _ring.rated;
  END LOOP;
  IF _all < _count AND NOT _cut AND (_soon OR EXISTS (
    SELECT FROM groups WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL LIMIT 1
  )) THEN
    _look.due := least(_look.due, _now + 5);
  END IF;
  -- include: note
  -- include: fold-sometimes
  RETURN '{"results":"' || repeat('d', _many) || '","room":' || _room || ',"grouped":true,"plain":true,"claimed":'
    || claim_reply(_jobs, true, false, 0, _look.due, _now, _look.waiting <= _all, _cut, _look.undone) || '}';
END
$body$;

-- name: carry_out
-- Applies the outcomes of a settle. The write itself is the check, whatever was read before: it finds its row only under the current
-- token. _freed: other jobs may be claimable now. _grouped: the queue has groups, and the call claims no jobs by id: these claims wait for
-- groups in the order of their keys, so they may hold none before.
-- Completed plain jobs that stay get their new values without the CASE expressions of `moved` and without a lock before each write: 10 %
-- fewer WAL records, and 9 to 39 % less of the server's time for a call of ten jobs.
-- Called by: carry_out_each, settle.
CREATE FUNCTION carry_out(
  _queue int, _clock float8, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[],
  _stacks text[], _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[],
  INOUT _change journal, OUT _results text, OUT _freed boolean, _grouped boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _many int := cardinality(_ids);
  _session text := _owners[1];
  _base bigint;
  _done bigint[];
  _finished int;
  _early boolean[];
  _group record;
  _keys text[];
  _groups text[];
  _entered text[];
  _logged text[];
  _marked text[];
  _extras text[];
  _refused bigint[];
BEGIN
  IF 'sleep' = ANY (_kinds) THEN
    _group := carry_out_each(
      _queue, _clock, _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages, _change, _grouped
    );
    _change := _group._change;
    _results := _group._results;
    _freed := _group._freed;
    RETURN;
  END IF;
  IF 'failed early' = ANY (_kinds) THEN
    SELECT array_agg(kind = 'failed early' ORDER BY n) INTO _early FROM unnest(_kinds) WITH ORDINALITY k(kind, n);
    _kinds := array_replace(_kinds, 'failed early', 'failed');
  END IF;
  IF 'completed' = ALL (_kinds) AND _session = ALL (_owners) AND NOT coalesce(0 = ANY (_keep_counts), false) THEN
    IF _grouped THEN
      -- include: complete-in-groups
    ELSE
      -- include: complete
    END IF;
    -- Records the jobs that `complete` has completed.
    IF _finished > 0 THEN
      SELECT coalesce(_done, '{1}') AS ns, (SELECT min(most) FROM unnest(_keep_counts) most) AS most,
        (SELECT min(age) FROM unnest(_keep_ages) age) AS age, _ids AS ids, _texts AS said
      INTO _group;
      _done := _group.ns;
      IF _finished < _many THEN
        SELECT array_agg(_ids[n] ORDER BY n), array_agg(_texts[n] ORDER BY n) INTO _group.ids, _group.said FROM unnest(_done) n;
      END IF;
      _change := book(
        _queue, _clock, 'completed', _finished, 0, _finished, _group.most, _group.age, _group.ids, _group.said, NULL, NULL, _change
      );
    END IF;
  END IF;
  IF _many = 1 AND _done IS NULL AND _keep_counts[1] IS DISTINCT FROM 0 THEN
    -- Most calls of a worker with few jobs bring one outcome: the statement for many takes 0.09 ms longer.
    _base := nextval('places');
    FOR _group IN
      -- Applies one outcome, whose job stays, and is neither cancelled nor a parent: the links of a parent are read under the lock of its
      -- job, as in carry_out.
      -- Returns a row as carry_out does.
      -- States: 3 active.
      -- MARK.key = 1
      -- MARK.child = 2
      -- MARK.parent = 4
      -- MARK.doomed = 64
      -- MARK.letter = 128
      -- MARK.cancelled = 256
      UPDATE jobs j
      SET
        -- include: moved
      FROM (
        SELECT _kinds[1] AS kind, _texts[1] AS said, _stacks[1] AS stack, _delays[1] AS delay, _lifos[1] AS lifo, 1 AS n
      ) o
      WHERE j.queue = _queue AND j.id = _ids[1] AND j.state + 0 = 3 AND j.session = _owners[1] AND j.fence = _fences[1]
        AND j.marks & (4 | 256) = 0 AND o.kind <> 'children'
      RETURNING o.kind, 1 AS jobs, (j.priority = 0)::int AS plain, 1 AS kept, _keep_counts[1] AS most, _keep_ages[1] AS age,
        '{1}'::bigint[] AS ns, _ids AS ids, NULL::boolean[] AS removed, _texts AS said, _delays AS delays,
        ARRAY[CASE WHEN _early[1] IS NOT TRUE THEN j.attempts_made END] AS attempts, NULL::text[] AS logged,
        CASE WHEN j.lock_key IS NOT NULL AND j.marks & 1 = 0 THEN ARRAY[j.lock_key::text] END AS keys,
        CASE WHEN j.marks & 1 > 0 THEN ARRAY[j.extras::json ->> 'g'] END AS groups,
        CASE WHEN j.marks & 1 > 0 AND j.lock_key IS NOT NULL THEN ARRAY[j.lock_key::text] END AS entered,
        CASE WHEN j.marks > 1 AND o.kind IN ('completed', 'failed') THEN _ids END AS marked,
        CASE WHEN j.marks & (2 | 64 | 128) > 0 AND o.kind IN ('completed', 'failed') THEN _ids END AS kin,
        NULL::boolean[] AS kin_gone,
        CASE WHEN j.marks > 1 AND o.kind IN ('completed', 'failed') THEN ARRAY[j.extras] END AS extras
    LOOP
      -- include: book-group
    END LOOP;
  END IF;
  -- Applies the outcomes that are not done yet, until each is done, refused or found lost. Sets _results.
  WHILE _done IS NULL OR cardinality(_done) < _many LOOP
    _base := coalesce(_base, nextval('places'));
    FOR _group IN
      -- Applies the outcomes that are not in _done or _refused: moves the jobs, or deletes those that are not kept. Returns a row for each
      -- kind of outcome. Jobs with parents, children, steps or a letter are deleted after their messages were sent (send_ends).
      -- States: 3 active.
      -- MARK.key = 1
      -- MARK.child = 2
      -- MARK.parent = 4
      -- MARK.steps = 32
      -- MARK.doomed = 64
      -- MARK.letter = 128
      -- MARK.cancelled = 256
      WITH outcomes AS (
        SELECT DISTINCT ON (id, owner, fence) * FROM unnest(
          _kinds, _ids, _owners, _fences, _texts, _stacks, _delays, _lifos, _keep_counts, _keep_ages
        ) WITH ORDINALITY o(kind, id, owner, fence, said, stack, delay, lifo, keep_count, keep_age, n)
        WHERE (_done IS NULL OR n <> ALL (_done)) AND (_refused IS NULL OR n <> ALL (_refused)) ORDER BY id, owner, fence, n
      ), o AS MATERIALIZED (
        -- Looked up and locked one by one, in the order of the ids: the next statement writes in another order, and so waits for no
        -- transaction.
        -- Writing at once without this would take 4 % less for 100 jobs, but then the planner may begin with all jobs of the queue.
        SELECT * FROM outcomes o,
          LATERAL (
            SELECT ctid AS at FROM jobs j
            WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence FOR UPDATE
          ) held
      ), moved AS (
        UPDATE jobs j
        SET
          -- include: moved
        FROM o
        WHERE j.ctid = o.at AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence
          AND (o.keep_count IS DISTINCT FROM 0 OR j.marks & (2 | 4 | 32 | 128) > 0) AND
          -- include: allowed
        RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made, false AS logged,
          j.lock_key, j.marks, j.extras
      ), gone AS (
        DELETE FROM jobs j
        USING o WHERE j.ctid = o.at AND j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence AND o.keep_count = 0
          AND j.marks & (2 | 4 | 32 | 128) = 0 AND
          -- include: allowed
        RETURNING o.n, o.kind, o.id, o.said, o.delay, o.keep_count, o.keep_age, j.priority, j.attempts_made + 1, j.log_next > 0,
          j.lock_key, j.marks, j.extras
      )
      SELECT kind, count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
        count(*) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS kept, min(NULLIF(keep_count, 0)) AS most,
        min(keep_age) FILTER (WHERE keep_count IS DISTINCT FROM 0) AS age, array_agg(n) AS ns, array_agg(id) AS ids,
        array_agg(keep_count IS NOT DISTINCT FROM 0) AS removed, array_agg(said) AS said, array_agg(delay) AS delays,
        array_agg(CASE WHEN _early[n] IS NOT TRUE THEN attempts_made END) AS attempts,
        array_agg(id) FILTER (WHERE logged) AS logged, array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND marks & 1 = 0) AS keys,
        array_agg(extras::json ->> 'g') FILTER (WHERE marks & 1 > 0) AS groups,
        array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND marks & 1 > 0) AS entered,
        array_agg(id) FILTER (WHERE marks > 1 AND kind IN ('completed', 'failed')) AS marked,
        array_agg(id) FILTER (WHERE marks & (2 | 4 | 32 | 64 | 128 | 256) > 0 AND kind IN ('completed', 'failed')) AS kin,
        array_agg(keep_count IS NOT DISTINCT FROM 0)
          FILTER (WHERE marks & (2 | 4 | 32 | 64 | 128 | 256) > 0 AND kind IN ('completed', 'failed')) AS kin_gone,
        array_agg(extras) FILTER (WHERE marks > 1 AND kind IN ('completed', 'failed')) AS extras
      FROM (SELECT * FROM moved UNION ALL SELECT * FROM gone ORDER BY n) done GROUP BY kind
    LOOP
      -- include: book-group
    END LOOP;
    EXIT WHEN cardinality(_done) = _many;
    _results := outcome_results(_queue, _kinds, _ids, _owners, _fences, _done, _texts, _refused, _results);
    -- Fails the cancelled jobs that their outcomes would let wait again: hand_back does.
    IF position('c' IN _results) > 0 THEN
      SELECT array_agg(id ORDER BY n) AS ids, array_agg(n) AS ns INTO _group FROM (
        SELECT DISTINCT ON (id) id, n FROM unnest(_ids) WITH ORDINALITY o(id, n) WHERE substr(_results, n::int, 1) = 'c' ORDER BY id, n
      ) o;
      PERFORM hand_back(_queue, _clock, _group.ids, NULL, NULL, true);
      _done := _done || _group.ns;
      CONTINUE;
    END IF;
    EXIT WHEN position('o' IN _results) = 0;
    -- Later ones are judged again: the outcome before them may end the run.
    _refused := ARRAY(SELECT n FROM generate_series(1, position('o' IN _results) - 1) n WHERE substr(_results, n, 1) IN ('p', 'u', 'r'));
  END LOOP;
  -- An earlier round may have found a job that was owned still, and that the last round has moved.
  IF cardinality(_done) = _many THEN _results := repeat('d', _many); END IF;
  -- Does what remains to be done for the jobs of a settle. Where only places of groups come free, no notes are needed.
  _freed := coalesce(_keys, _marked, _groups) IS NOT NULL;
  IF _grouped AND coalesce(_keys, _logged, _marked, _entered) IS NULL THEN
    IF _freed THEN _freed := free_places(_queue, _groups); END IF;
  ELSIF _freed OR _logged IS NOT NULL THEN
    _change := leave(_queue, _clock, _keys, _logged, _marked, _extras, false, _change, _groups, _entered);
  END IF;
END
$body$;

-- name: carry_out_each
-- Applies outcomes one by one, as carry_out does at once. Calls with delays that record steps need it: an outcome is judged after those
-- before it.
-- Called by: carry_out.
CREATE FUNCTION carry_out_each(
  _queue int, _clock float8, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[],
  _stacks text[], _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[],
  INOUT _change journal, OUT _results text, OUT _freed boolean, _grouped boolean
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _locked text[];
  _sleeps boolean;
  _letter text;
  _got record;
BEGIN
  _results := '';
  _freed := false;
  -- include: lock-jobs
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _sleeps := _kinds[_n] = 'sleep';
    _letter := CASE WHEN _sleeps THEN record_sleep(_queue, _ids[_n], _owners[_n], _fences[_n], _texts[_n]::json) END;
    IF _letter IS NULL THEN
      _got := carry_out(
        _queue, _clock, ARRAY[CASE WHEN _sleeps THEN 'delay' ELSE _kinds[_n] END], ARRAY[_ids[_n]], ARRAY[_owners[_n]],
        ARRAY[_fences[_n]], ARRAY[CASE WHEN _sleeps THEN _texts[_n]::json ->> 2 ELSE _texts[_n] END], ARRAY[_stacks[_n]],
        ARRAY[_delays[_n]], ARRAY[_lifos[_n]], ARRAY[_keep_counts[_n]], ARRAY[_keep_ages[_n]], _change, _grouped
      );
      _change := _got._change;
      _letter := _got._results;
      _freed := _freed OR _got._freed;
    END IF;
    _results := _results || _letter;
  END LOOP;
END
$body$;

-- name: book
-- Records a group of outcomes of one kind: counts, events, and retention of jobs that finished before.
-- Called by: carry_out.
-- States: 4 completed, 5 failed.
CREATE FUNCTION book(
  _queue int, _clock float8, _kind text, _jobs bigint, _plain bigint, _kept bigint, _most float8, _age float8,
  _ids text[], _said text[], _delays float8[], _attempts int[], INOUT _change journal,
  _removed boolean[] DEFAULT NULL
) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _body text;
  _large int[];
  _dues bigint[];
  _ended text[];
BEGIN
  IF _kind IN ('retry later', 'delay') THEN
    SELECT array_agg(ceil(_clock + delay)::bigint ORDER BY n) INTO _dues FROM unnest(_delays) WITH ORDINALITY d(delay, n);
  END IF;
  _change.active := _change.active - _jobs;
  _change.events := _change.events + _jobs;
  CASE _kind
    WHEN 'completed' THEN
      -- Sets _body: the events of completed jobs. A large result stays with its job, if the job stays.
      -- EVENT_VALUE_BYTES = 4096
      IF pg_column_size(_said) > 4096 THEN
        SELECT array_agg(CASE WHEN removed IS NOT TRUE AND octet_length(said) > 4096 THEN NULL ELSE said END ORDER BY n),
          CASE WHEN bool_or(removed IS NOT TRUE AND octet_length(said) > 4096) THEN array_agg(
            CASE WHEN removed IS NOT TRUE AND octet_length(said) > 4096 THEN 1 END ORDER BY n
          ) END
        INTO _said, _large FROM unnest(_said, _removed) WITH ORDINALITY o(said, removed, n);
      END IF;
      _body := event(
        'completed', _ids,
        CASE WHEN _large IS NULL THEN json_build_object('returnvalue', _said)
          ELSE json_build_object('returnvalue', _said, 'large', _large) END
      );
    WHEN 'failed' THEN
      _body := event('failed', _ids, json_build_object('failedReason', _said));
      -- Those without a number have attempts left.
      SELECT array_agg(id ORDER BY n), array_agg(attempts ORDER BY n) INTO _ended, _attempts
      FROM unnest(_ids, _attempts) WITH ORDINALITY o(id, attempts, n) WHERE attempts IS NOT NULL;
      IF _ended IS NOT NULL THEN
        _change.events := _change.events + cardinality(_ended);
        _body := _body || ',' || event('retries-exhausted', _ended, json_build_object('attemptsMade', _attempts));
      END IF;
    WHEN 'retry' THEN _body := event('waiting', _ids, json_build_object('prev', 'active', 'failedReason', _said));
    WHEN 'retry later' THEN _body := event('delayed', _ids, json_build_object('delay', _dues, 'failedReason', _said));
    WHEN 'delay' THEN _body := event('delayed', _ids, json_build_object('delay', _dues));
    WHEN 'release', 'return' THEN _body := event('waiting', _ids, '{"prev":"active"}');
    WHEN 'children' THEN _body := event('waiting-children', _ids, '{"prev":"active"}');
  END CASE;
  _change.body := concat_ws(',', _change.body, _body);
  IF _kind = 'completed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.completions := _change.completions + _jobs;
    _change.completed := _change.completed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.completed := _change.completed - retain(_queue, 4::smallint, _change.completed, _most, _clock - _age);
    END IF;
  ELSIF _kind = 'failed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.failures := _change.failures + _jobs;
    _change.failed := _change.failed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.failed := _change.failed - retain(_queue, 5::smallint, _change.failed, _most, _clock - _age);
    END IF;
  ELSIF _kind IN ('retry later', 'delay') THEN
    _change.delayed := _change.delayed + _jobs;
  ELSIF _kind = 'children' THEN
    _change.parents := coalesce(_change.parents, 0) + _jobs;
  ELSE
    _change.waiting := _change.waiting + _plain;
    _change.prioritized := _change.prioritized + _jobs - _plain;
  END IF;
END
$body$;

-- name: outcome_refusal
-- Returns why the children of a job refuse an outcome, as a letter: pending, unsuccessful, ready; null if they do not. _said: of the
-- outcome `children`, the child that the job waits for, as JSON; null: all. The caller holds the lock of the job.
-- Called by: carry_out, outcome_results.
CREATE FUNCTION outcome_refusal(_queue int, _job text, _kind text, _said text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _family families;
  _waits boolean;
BEGIN
  IF _kind NOT IN ('completed', 'children') THEN RETURN NULL; END IF;
  SELECT * INTO _family FROM families WHERE queue = _queue AND parent = _job;
  IF _family.failed > 0 THEN RETURN 'u'; END IF;
  _waits := coalesce(_family.pending > 0, false);
  IF _kind = 'completed' THEN RETURN CASE WHEN _waits THEN 'p' END; END IF;
  IF _said IS NOT NULL THEN
    _waits := EXISTS (
      SELECT FROM links
      WHERE queue = _queue AND parent = _job AND child_queue = (SELECT queue FROM queues WHERE name = _said::json ->> 'queue')
        AND child = _said::json ->> 'id' AND state = 'pending'
    );
  END IF;
  RETURN CASE WHEN NOT _waits THEN 'r' END;
END
$body$;

-- name: outcome_results
-- Returns a letter for each outcome of a settle: done, missing, lost, owned still, or cancelled (the job is to fail instead). Outcomes that
-- are not in _done are judged by what is there now, as if they came one after the other. A job that is owned still was locked after another
-- transaction had written to it, or an earlier outcome of the call was refused: the next statement can write to it.
-- Outcomes that children refuse (outcome_refusal) keep their letters: _refused are those of the pass before, _before its letters.
-- Called by: carry_out.
-- States: 3 active, 4 completed, 5 failed.
-- MARK.parent = 4
-- MARK.cancelled = 256
CREATE FUNCTION outcome_results(
  _queue int, _kinds text[], _ids text[], _owners text[], _fences bigint[], _done bigint[],
  _texts text[], _refused bigint[], _before text
) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT string_agg(
      CASE WHEN o.n = ANY (_done) THEN 'd' WHEN o.n = ANY (_refused) THEN substr(_before, o.n::int, 1) WHEN j.id IS NULL THEN 'm'
        WHEN j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence THEN coalesce(
          CASE WHEN j.marks & 4 > 0 OR o.kind = 'children' THEN outcome_refusal(_queue, o.id, o.kind, o.said) END,
          CASE WHEN j.marks & 256 > 0 AND o.kind NOT IN ('completed', 'failed') THEN 'c' ELSE 'o' END
        )
        WHEN j.state = CASE o.kind WHEN 'completed' THEN 4 WHEN 'failed' THEN 5 END AND j.session = o.owner AND j.fence = o.fence THEN 'd'
        ELSE 'l' END, ''
      ORDER BY o.n
    )
    FROM unnest(_kinds, _ids, _owners, _fences, _texts) WITH ORDINALITY o(kind, id, owner, fence, said, n)
    LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON true
  );
END
$body$;

-- part: complete
-- Completes the jobs of _ids, if all are plain and stay, and _session owns them. Sets _finished, how many that were and, of several, _done:
-- which.
-- If some are not plain, it completes none: otherwise the jobs of the call would be locked in two passes, and not in the order of their
-- ids.
-- Rows are written, and so locked, in the order of the ids. A row that another transaction has just written may be left out: the ordinary
-- path (carry_out) finds it.
-- States: 3 active.
IF _many = 1 THEN
  UPDATE jobs j
  SET ord = nextval('places') + 1, returnvalue = _texts[1],
    -- include: completed
  WHERE j.queue = _queue AND j.id = _ids[1] AND j.state + 0 = 3 AND j.session = _session AND j.fence = _fences[1] AND
    -- include: plain
  ;
  GET DIAGNOSTICS _finished = ROW_COUNT;
ELSE
  _base := nextval('places');
  WITH outcomes AS (
    -- include: outcomes-by-id
  ), o AS MATERIALIZED (
    SELECT o.*, held.at FROM outcomes o,
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND
          -- include: plain
        OFFSET 0
      ) held
  ), moved AS (
    UPDATE jobs j
    SET ord = _base + o.n, returnvalue = o.said,
      -- include: completed
    FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND
      -- include: plain
    RETURNING o.n
  )
  SELECT array_agg(n ORDER BY n), count(*) INTO _done, _finished FROM moved;
END IF;

-- part: complete-in-groups
-- The same as `complete` for queues with groups. Jobs of groups are completed too. Sets _groups: the groups of these.
-- States: 3 active.
-- MARK.key = 1
_base := nextval('places');
WITH outcomes AS (
  -- include: outcomes-by-id
), o AS MATERIALIZED (
  SELECT o.*, held.at FROM outcomes o,
    LATERAL (
      SELECT ctid AS at FROM jobs j
      WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND j.marks <= 1
        AND j.lock_key IS NULL
      OFFSET 0
    ) held
), moved AS (
  UPDATE jobs j
  SET ord = _base + o.n, returnvalue = o.said,
    -- include: completed
  FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence
    AND j.marks <= 1 AND j.lock_key IS NULL
  RETURNING o.n, CASE WHEN j.marks = 1 THEN j.extras::json ->> 'g' END AS key
)
SELECT array_agg(n ORDER BY n), count(*), array_agg(key) FILTER (WHERE key IS NOT NULL) INTO _done, _finished, _groups FROM moved;

-- part: completed
-- The new values of a completed job that stays, beside its place in the list and its result.
-- States: 4 completed.
state = 4, delay = 0, due_at = NULL, attempts_made = attempts_made + 1, finished_on = _now, claim_seq = NULL, ends_at = NULL,
timed = false

-- part: plain
-- True for a plain job `j`: when it leaves a state, there is nothing to do but to change its row (leave). Fast paths take no others.
j.marks = 0 AND j.lock_key IS NULL

-- part: outcomes-by-id
-- The outcomes of a call, each once, in the order of the ids of their jobs.
SELECT DISTINCT ON (id, fence) * FROM unnest(_ids, _fences, _texts) WITH ORDINALITY o(id, fence, said, n)
ORDER BY id, fence, n

-- part: book-group
-- Records a row of carry_out or carry_out.
_done := _done || _group.ns;
-- Before the retention, which may remove the jobs.
IF _group.kin IS NOT NULL THEN PERFORM send_ends(_queue, _group.kin, _group.kin_gone); END IF;
_change := book(
  _queue, _clock, _group.kind, _group.jobs, _group.plain, _group.kept, _group.most, _group.age, _group.ids, _group.said,
  _group.delays, _group.attempts, _change, _group.removed
);
_keys := _keys || _group.keys;
_groups := _groups || _group.groups;
_entered := _entered || _group.entered::text[];
_logged := _logged || _group.logged;
_marked := _marked || _group.marked;
_extras := _extras || _group.extras;

-- part: note-completed
-- Writes the jobs of _done to the journal, if the fast path completed only some.
IF _finished > 0 THEN
  INSERT INTO journal (queue, active, completed, finishes, events, body, minute, completions)
  SELECT _queue, -_finished, _finished, _finished, _finished,
    event('completed', array_agg(_ids[n] ORDER BY i), json_build_object('returnvalue', array_agg(_texts[n] ORDER BY i))),
    _minute, _finished
  FROM unnest(_done) WITH ORDINALITY o(n, i);
END IF;

-- part: keep-all
-- The variables that fast paths pass on as the retention of their jobs (settle-in-full): all jobs stay.
_keep_counts float8[];
_keep_ages float8[];

-- part: fast-settle-variables
-- The variables of settle_plain, settle_trimmed and settle_children. _gone: how many finished jobs were removed, null: none.
_clock float8 := clock_ms();
_now bigint := floor(_clock);
_many int := cardinality(_ids);
_queue int;
_base bigint;
_done bigint[];
_finished int;
_gone bigint;
_minute int;
-- include: take-variables

-- part: enter-fast-settle
-- Locks the caller and writes its reply in one go, or settles by the ordinary path. Callers, sessions, jobs: in the order that all
-- transactions use. Sets _queue.
UPDATE callers c SET seq = _seq, used_at = _now, reply = repeat('d', _many)
WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _session AND c.seq < _seq RETURNING c.queue INTO _queue;
IF NOT FOUND THEN
  -- include: settle-in-full
END IF;

-- part: settle-look
-- Locks the session and looks whether the fast path applies. If not, it settles by the ordinary path.
SELECT
  -- include: plain-look
  , CASE WHEN q.metric_points IS NOT NULL THEN _now / 60000 END
INTO _head, _left, _due, _undone, _plain, _minute
FROM sessions s, queues q,
  -- include: journal-sums
WHERE s.queue = _queue AND s.id = _session AND
  -- include: undoubted
  AND q.queue = _queue FOR KEY SHARE OF s;
IF _plain IS NOT TRUE OR _due <= _now THEN
  UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
  -- include: settle-in-full
END IF;

-- part: settle-in-full
-- Settles by the ordinary path.
RETURN settle(
  _name, _session, _seq, array_fill('completed'::text, ARRAY[cardinality(_ids)]), _ids,
  array_fill(_session, ARRAY[cardinality(_ids)]), _fences, _texts, NULL, NULL, NULL, _keep_counts, _keep_ages, _session, _seq, _count, NULL,
  _by, NULL, NULL, NULL, _inline
);

-- part: take-after-settle
-- Takes the next jobs after `complete`, and writes the journal. If jobs could not be completed, it settles by the ordinary path.
IF _finished < _many THEN
  -- The finished jobs are recorded here; the general path then finds them done.
  -- include: note-completed
  UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
  -- include: settle-in-full
END IF;
-- include: take
INSERT INTO journal (queue, waiting, active, completed, finishes, events, body, minute, completions)
VALUES (
  _queue, -_taken, _taken - _many, _many - coalesce(_gone, 0), _many, _many + _taken,
  concat_ws(',', event('completed', _ids, json_build_object('returnvalue', _texts)), _active), _minute, _many
);
-- include: take-rest
-- include: fold-sometimes

-- part: moved
-- The new values of the job of the outcome `o`, if the job stays.
-- A delay sets the signal that a job with steps awaits, or clears it.
-- MARK.steps = 32
-- States: 2 delayed, 4 completed, 5 failed, 6 waiting-children.
state = CASE o.kind WHEN 'completed' THEN 4 WHEN 'failed' THEN 5 WHEN 'retry later' THEN 2 WHEN 'delay' THEN 2 WHEN 'children' THEN 6
  ELSE
    -- include: waiting-state
  END,
lock_key = CASE WHEN o.kind IN ('retry', 'release', 'return') THEN
    -- include: waiting-key
  ELSE lock_key END,
ord = CASE WHEN o.lifo THEN -(_base + o.n) ELSE _base + o.n END, delay = coalesce(o.delay, 0), due_at = ceil(_clock + o.delay),
attempts_made = attempts_made + CASE WHEN o.kind IN ('delay', 'release', 'return', 'children') THEN 0 ELSE 1 END,
attempts_started = attempts_started - CASE WHEN o.kind = 'return' THEN 1 ELSE 0 END,
finished_on = CASE WHEN o.kind IN ('completed', 'failed') THEN floor(_clock) END,
returnvalue = CASE WHEN o.kind = 'completed' THEN o.said ELSE returnvalue END,
failed_reason = CASE WHEN o.kind IN ('failed', 'retry', 'retry later') THEN o.said ELSE failed_reason END,
stacktrace = coalesce(o.stack, stacktrace),
extras = CASE WHEN marks & 32 > 0 AND o.kind IN ('delay', 'retry later') THEN
    (extras::jsonb - 'w' || jsonb_strip_nulls(jsonb_build_object('w', CASE WHEN o.kind = 'delay' THEN o.said END)))::text
  ELSE extras END,
-- Who finished it stays in the row, so that a repeated finish is recognised.
session = CASE WHEN o.kind IN ('completed', 'failed') THEN session END,
fence = CASE WHEN o.kind IN ('completed', 'failed') THEN j.fence END, claim_seq = NULL, ends_at = NULL, timed = false

-- part: allowed
-- True if the children of the job `j`, if it has any, allow the outcome `o`, and the job is not one that fails instead because it was
-- cancelled.
-- The caller holds the lock of the job.
-- MARK.parent = 4
-- MARK.cancelled = 256
CASE WHEN j.marks & 4 > 0 OR o.kind = 'children' THEN outcome_refusal(_queue, o.id, o.kind, o.said) IS NULL ELSE true END
AND (j.marks & 256 = 0 OR o.kind IN ('completed', 'failed'))
