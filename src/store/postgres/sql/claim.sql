-- Claiming jobs.

-- name: claim
-- Claims jobs.
-- If there is nothing to write, it replies without a lock: a look at an empty queue costs no transaction number and no fsync.
-- Called by: claim.ts, claim_plain.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION claim(
  _name text, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8,
  _window float8, _remember boolean, _inline int
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _look record;
  _row queues;
  _limited bigint;
  _any boolean;
  _open boolean;
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
BEGIN
  IF _queue IS NULL THEN RETURN claim_reply(NULL, false, false, 0, NULL, _now, true); END IF;
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  -- Sets _look: the row of the queue, whether the session lives, its last call, whether jobs wait, whether the cap is reached, when the
  -- first delayed job is due, whether jobs wait behind their keys, and whether something is undone.
  -- States: -1 behind, 2 delayed.
  SELECT q AS row,
    EXISTS (SELECT FROM sessions WHERE queue = _queue AND id = _session AND reaped + 0 = 0 AND expires_at > _now) AS alive,
    coalesce((SELECT seq FROM callers WHERE queue = _queue AND id = _session), 0) AS last,
    q.waiting + q.prioritized + coalesce(
      (SELECT sum(waiting + prioritized) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
    ) > 0 AS waiting,
    CASE WHEN q.max_active IS NOT NULL THEN q.active + coalesce(
      (SELECT sum(active) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
    ) >= q.max_active ELSE false END AS full,
    (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1) AS due,
    (
      SELECT EXISTS (
        SELECT * FROM (
          SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT ord FROM jobs WHERE queue = _queue AND state = -1 AND (priority, ord) >= (0, dead.head_keyed)
          ORDER BY priority, ord LIMIT 1
        ) s LIMIT 1
      )
      FROM (SELECT head_keyed, head_freed FROM dead_ranges WHERE queue = _queue UNION ALL SELECT 0, 0 LIMIT 1) dead
    ) AS behind,
    -- include: any-undone
    AS undone
  INTO _look FROM queues q WHERE queue = _queue;
  _row := _look.row;
  _limited := limited_ms(_row, coalesce(_row.rate_max, _max), _now);
  _any := _look.waiting OR coalesce(_look.due <= _now, false);
  IF _ids IS NOT NULL THEN
    _open := cardinality(_ids) > 0 AND _any;
  ELSIF _look.due <= _now THEN
    _open := true;
  ELSIF _row.paused OR _limited > 0 THEN
    _open := false;
  ELSE
    _open := _any AND NOT _look.full;
    -- Where jobs wait for their keys or for places in their groups, there may be nothing else.
    IF _open AND (_look.behind OR _row.grouped) THEN
      -- Sets _open: whether there is a job that a claim may take, where jobs wait behind their keys or in groups. One in ten of these
      -- claims also searches the ranges that seemed dead.
      -- States: 1 waiting.
      _open :=
        -- include: any-keyed-alive
        OR (
          SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
        ) IS NOT NULL OR (
          SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _row.head_waiting
          ORDER BY priority, ord LIMIT 1
        ) IS NOT NULL
        OR (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1) IS NOT NULL
        OR (random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue)) OR _row.grouped AND (
          (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL OR (
            SELECT turn FROM groups WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL ORDER BY turn, key LIMIT 1
          ) IS NOT NULL OR (
            SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL AND rests_until <= _now
            ORDER BY rests_until LIMIT 1
          ) IS NOT NULL
        );
    END IF;
  END IF;
  IF NOT _look.alive OR _seq > _look.last AND NOT _remember AND (_count = 0 OR NOT _open) THEN
    IF _row.grouped AND NOT _row.paused THEN _look.due := least(_look.due, rest_ends(_queue, _now)); END IF;
    RETURN claim_reply(NULL, _look.alive, _row.paused, _limited, _look.due, _now, NOT _any, false, _look.undone);
  END IF;
  _last := enter_call(_queue, _session);
  -- include: lock-session
  _got := take(
    _queue, _session, _seq, _count, _ids, _by, _timed, _max, _window, _clock, _alive, _last, no_change(_queue), _inline
  );
  _change := _got._change;
  IF _alive AND _seq > _last AND (_got._taken > 0 OR _remember) THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = NULL WHERE queue = _queue AND id = _session;
  END IF;
  -- include: note
  -- include: fold-sometimes
  RETURN _got._reply;
END
$body$;

-- name: claim_plain
-- The fast path of a claim: jobs without key and priority, in a queue that is not paused, limited or capped. It is also part of the fast
-- path of settling (settle_plain). It is one function that calls no other, under the settings of the connection (sql.ts). If
-- the queue needs more, it calls `claim`, which must then find everything as if this attempt had never happened.
-- Gain: without it, a lone job takes 1.14 to 1.18 × the processor time (node bench/fast-paths.mjs claim_plain).
-- Called by: claim.ts.
-- States: -1 behind.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION claim_plain(
  _name text, _session text, _seq bigint, _count int, _by text, _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _last bigint;
  -- include: take-variables
BEGIN
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  SELECT c.seq,
    -- include: plain-look
    AND NOT (SELECT ord FROM jobs WHERE queue = _queue AND state = -1 ORDER BY priority, ord LIMIT 1) IS NOT NULL
  INTO _last, _head, _left, _due, _undone, _plain
  FROM callers c, sessions s, queues q,
    -- include: journal-sums
  WHERE c.queue = _queue AND c.id = _session AND s.queue = _queue AND s.id = _session AND
    -- include: undoubted
    AND q.queue = _queue;
  IF _plain IS NOT TRUE OR _due <= _now OR _seq <= _last THEN
    RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline);
  END IF;
  -- A look at an empty queue costs no transaction number and no fsync.
  IF _left <= 0 OR _count = 0 THEN RETURN claim_reply(NULL, true, false, 0, _due, _now, _left <= 0, false, _undone); END IF;
  UPDATE callers SET seq = _seq, used_at = _now, reply = NULL WHERE queue = _queue AND id = _session AND seq < _seq;
  IF NOT FOUND THEN RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline); END IF;
  PERFORM FROM sessions s
  WHERE s.queue = _queue AND s.id = _session AND
    -- include: undoubted
  FOR KEY SHARE;
  IF NOT FOUND THEN
    UPDATE callers SET seq = _seq - 1 WHERE queue = _queue AND id = _session;
    RETURN claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline);
  END IF;
  -- include: take
  IF _taken > 0 THEN
    INSERT INTO journal (queue, waiting, active, events, body) VALUES (_queue, -_taken, _taken, _taken, _active);
  END IF;
  -- include: take-rest
  -- include: fold-sometimes
  RETURN claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone);
END
$body$;

-- name: claim_reply
-- Returns the reply of a claim.
-- Called by: claim_plain, claim, settle_children, settle_groups, settle_plain, settle, take.
CREATE FUNCTION claim_reply(
  _jobs text, _alive boolean, _paused boolean, _limited bigint, _due bigint, _now bigint, _drained boolean,
  _more boolean DEFAULT false, _undone boolean DEFAULT false
) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT '{"jobs":[' || coalesce(_jobs, '') || '],"alive":' || _alive || ',"paused":' || _paused || ',"limited":' || _limited
  || ',"next":' || coalesce(
    least(
      CASE WHEN NOT _paused AND _limited > 0 THEN _limited END,
        CASE WHEN _due > _now THEN _due - _now WHEN _due <= _now THEN 0 END
    )::text, 'null'
  ) || ',"drained":' || _drained || ',"more":' || coalesce(_more, false) || CASE WHEN _undone THEN ',"undone":true}' ELSE '}' END
$body$;

-- name: take
-- Claims jobs: the part that claims and settles share.
-- Runs after the caller was entered and the session locked: _alive says whether the session lives, _last is its last call.
-- Called by: claim, settle.
-- States: 2 delayed.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION take(
  _queue int, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8,
  _window float8, _clock float8, _alive boolean, _last bigint, INOUT _change journal, OUT _taken int,
  OUT _reply text, _inline int
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _look record;
  _row queues;
  _room int := 0;
  _got record;
  _jobs text;
  _due bigint;
  _left bigint;
  _soon boolean := false;
  _more boolean := false;
BEGIN
  _taken := 0;
  -- Sets _look: the row of the queue, how many jobs wait and are delayed, whether one stretch has all waiting jobs (`in_line`), whether
  -- jobs with a key may be claimed, and whether something is undone.
  -- States: 1 waiting.
  SELECT q AS row, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting,
    q.delayed + coalesce(j.delayed, 0) AS delayed,
    q.prioritized + coalesce(j.prioritized, 0) + _change.prioritized <= 0
      AND (
        SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
      ) IS NULL AS in_line,
    -- include: any-keyed-alive
    AS keyed,
    -- include: any-undone
    AS undone
  INTO _look
  FROM queues q,
    -- include: journal-sums
  WHERE q.queue = _queue;
  _row := _look.row;
  _left := _look.waiting + _change.waiting + _change.prioritized;
  IF _look.delayed + _change.delayed > 0 THEN
    _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
  END IF;
  IF _alive AND _seq <= _last THEN
    -- Sets _jobs and _more for a claim that was carried out before, or for a straggler that its caller gave up on: it may see what it got,
    -- and never get more.
    -- States: 3 active.
    SELECT
      -- include: claimed-arrays
      , coalesce(_left > 0 AND sum(size) > 2097152, false)
    INTO _jobs, _more
    FROM (
      SELECT *, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs
      WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq ORDER BY fence
    ) j;
  ELSIF _alive AND (_ids IS NOT NULL OR NOT _row.paused) AND (_left > 0 OR _due <= _now) THEN
    IF _row.fenced_on IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
    IF _ids IS NULL AND (coalesce(_row.rate_max, _max, _row.max_active) IS NOT NULL OR _row.window_ends > _now) THEN
      SELECT * INTO _row FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
    END IF;
    IF _row.window_ends <= _now THEN _row.window_used := 0; END IF;
    IF _ids IS NOT NULL THEN
      -- Takes jobs by their ids, and adds up what they change.
      -- States: 2 delayed.
      _got := grant_by_id(_queue, _session, _seq, _ids, _count, _by, _timed, _clock, _change, _inline);
      _taken := _got._taken;
      _change := _got._change;
      _jobs := _got._jobs;
      _more := _got._cut;
      _left := _look.waiting + _change.waiting + _change.prioritized;
      IF _due <= _now THEN _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1); END IF;
    ELSIF _row.limited_until <= _now THEN
      _room := greatest(0, least(_count, coalesce(coalesce(_row.rate_max, _max) - _row.window_used, _count)));
    END IF;
  END IF;
  -- Moves delayed jobs that are due to waiting, and looks again at what waits then.
  -- States: 2 delayed.
  IF _alive AND _seq > _last AND _ids IS NULL AND _count > 0 AND _due <= _now THEN
    -- Whether there is room or not: a due job that stayed delayed would look claimable by time alone.
    _change := promote_due(_queue, _now, _change);
    _due := (SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1);
    _look.keyed :=
      -- include: any-keyed-alive
    ;
    _look.in_line := false;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    IF _row.max_active IS NOT NULL THEN
      -- Limits _room to the cap. All claims of the queue wait here for one another, so that each counts what the others have taken.
      _room := least(
        _room, room_under_cap(_queue, _session, _row.max_active, (SELECT active FROM counts_of(_queue)) + _change.active, _now)
      );
    END IF;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    -- Takes up to _room jobs, and adds up what they change.
    -- SOON_MS = 5: when to retry if other transactions held what might have been claimed, in ms.
    IF _row.grouped THEN
      _got := grant_groups(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline, _look.keyed);
      _soon := _got._soon;
    ELSIF _look.keyed THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline);
      _soon := _got._soon;
    ELSE
      _got := grant_locks(
        _queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _look.in_line, _change, NULL, _inline
      );
    END IF;
    _taken := _got._taken;
    _left := _look.waiting + (_got._change).waiting + (_got._change).prioritized;
    _more := _got._cut;
    IF _taken < _room AND _left > 0 AND NOT _more AND (NOT _row.grouped OR random() < 0.1) THEN
      -- Something lies below the head, because its transaction committed late; or was changed while it was being locked. In a queue with
      -- groups jobs may wait for places, so only one in ten claims looks for that.
      _got := grant_locks(
        _queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, false, _got._change, _got._jobs, _inline, _got._bytes,
        true
      );
      _more := _got._cut;
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
    END IF;
    _change := _got._change;
    _jobs := _got._jobs;
    -- One in ten claims that find too little also searches the ranges that seemed dead: a row may have been committed there late.
    IF _taken < _room AND _left > 0 AND NOT _more
        AND (random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue)) THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, _change, _inline, true);
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
      _change := _got._change;
      _jobs := concat_ws(',', _jobs, _got._jobs);
      _more := _got._cut;
    END IF;
    IF _soon AND _taken < _room THEN _due := least(_due, _now + 5); END IF;
  END IF;
  -- The window opens with the first claim in it, not with the first look.
  IF _taken > 0 AND (coalesce(_row.rate_max, _max) IS NOT NULL OR _row.window_ends > _now) THEN
    -- Counts the jobs that were taken in the window of the rate limit, and opens a window if there is none. The `max` of the queue and the
    -- duration of the claim come first (job/rate.ts).
    UPDATE queues
    SET window_ends = CASE WHEN window_ends > _now THEN window_ends ELSE coalesce(ceil(_clock + coalesce(_window, rate_ms)), 0) END,
      window_used = CASE WHEN window_ends > _now THEN window_used ELSE 0 END + _taken, window_max = coalesce(rate_max, _max, window_max)
    WHERE queue = _queue RETURNING * INTO _row;
  END IF;
  -- Sets _due to the end of a rest, if that is sooner. Most queues have no resting group.
  IF _row.grouped AND NOT _row.paused AND (
    SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1
  ) IS NOT NULL THEN
    _due := least(_due, rest_ends(_queue, _now));
  END IF;
  _reply := claim_reply(
    _jobs, _alive, _row.paused, limited_ms(_row, coalesce(_row.rate_max, _max), _now), _due, _now,
    _left <= 0 AND coalesce(_due > _now, true), _more, _look.undone
  );
END
$body$;

-- name: grant_locks
-- Grants the locks of a claim: delayed jobs that are due become waiting, and waiting jobs get their locks, in order or by their ids.
-- Claims call it under the locks of their caller and session. It skips rows that other transactions hold, except rows that are
-- named by id.
-- `_in_line`: no job was put to the front and none has a priority, so that one stretch is enough. `_used`: bytes of the jobs granted
-- before.
-- `_cut`: it stopped because the reply is full.
-- Called by: claim_plain, settle_children, settle_plain, take.
-- States: 1 waiting.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION grant_locks(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  _in_line boolean, INOUT _change journal, INOUT _jobs text, OUT _taken int, OUT _bytes bigint,
  OUT _cut boolean, _inline int, _used bigint DEFAULT 0, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _most int := _room;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  IF _in_line THEN
    WITH waiting AS (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
      ORDER BY ord LIMIT _room FOR UPDATE SKIP LOCKED
    )
    -- include: grant
  ELSE
    -- include: skip-dead
    WITH waiting AS (
      SELECT * FROM (
        -- include: waiting-in-order
      ) s LIMIT _room
    )
    -- include: grant
  END IF;
END
$body$;

-- name: grant_by_id
-- Grants the locks of the named jobs that wait, in their order.
-- Called by: take.
-- States: -2 grouped, 1 waiting, 3 active.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION grant_by_id(
  _queue int, _session text, _seq bigint, _ids text[], _count int, _by text, _timed float8, _clock float8,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _cut boolean, _inline int
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _locked text[];
  _used bigint := 0;
  _bytes bigint;
  _due tid[];
  _one record;
  _chosen text[] := '{}';
  _keys text[] := '{}';
  _members text[] := '{}';
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  -- include: lock-jobs
  _ids := ARRAY(SELECT id FROM unnest(_ids) WITH ORDINALITY o(id, n) WHERE id = ANY (_locked) ORDER BY n);
  PERFORM lock_keys_of(_queue, _ids);
  -- Moves the named jobs that are due to waiting.
  -- States: 2 delayed.
  _due := ARRAY(
    SELECT j.at FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 2 AND due_at <= floor(_clock) OFFSET 0
      ) j
    ORDER BY o.n
  );
  IF cardinality(_due) > 0 THEN _change := promote(_queue, _due, _change); END IF;
  IF EXISTS (SELECT FROM queues WHERE queue = _queue AND grouped) THEN PERFORM lock_groups_of(_queue, _ids); END IF;
  FOR _one IN
    SELECT j.* FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT id, lock_key, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
    ORDER BY o.n
  LOOP
    EXIT WHEN cardinality(_chosen) >= _count;
    CONTINUE WHEN _one.id = ANY (_chosen);
    IF _one.state = -2 THEN
      CONTINUE WHEN NOT group_has_place(_queue, _one.lock_key, cardinality(array_positions(_members, _one.lock_key::text)));
      _members := _members || _one.lock_key::text;
    ELSIF _one.lock_key IS NOT NULL THEN
      CONTINUE WHEN _one.lock_key = ANY (_keys)
        OR EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = _one.lock_key AND lock_key IS NOT NULL AND state = 3);
      _keys := _keys || _one.lock_key;
    END IF;
    _chosen := _chosen || _one.id;
  END LOOP;
  WITH waiting AS (
    SELECT j.* FROM unnest(_chosen) WITH ORDINALITY o(id, n),
      LATERAL (
        SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0
      ) j
    ORDER BY o.n
  )
  -- include: grant
  IF cardinality(_members) > 0 THEN
    -- Counts the jobs of groups that were taken by id in their groups.
    -- States: 3 active.
    -- MARK.key = 1
    PERFORM write_turns(_queue, _clock, array_agg(key), array_agg(jobs))
    FROM (
      SELECT j.key, count(*)::int AS jobs FROM unnest(_chosen) o(id),
        LATERAL (
          SELECT extras::json ->> 'g' AS key FROM jobs
          WHERE queue = _queue AND id = o.id AND state + 0 = 3 AND marks & 1 > 0 OFFSET 0
        ) j
      GROUP BY j.key
    ) taken;
  END IF;
END
$body$;

-- name: grant_in_turn
-- The same for queues where jobs with a key wait too. It decides which jobs come first before it locks any row, so that no row is
-- locked in vain.
-- Called by: take.
-- _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION grant_in_turn(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _first record;
  _chosen record;
  _most int;
  _used bigint := 0;
  _freed boolean;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  -- include: skip-dead
  _freed := show_freed(_queue, _head_freed, _head_keyed);
  _first := first_of_keys(_queue, _room, _head_keyed);
  -- include: choose-in-turn
  _soon := _freed OR _first._soon;
  _most := _chosen.plain;
  WITH waiting AS (
    SELECT at, size FROM (
      -- include: waiting-in-order
      UNION ALL
      -- include: waiting-chosen
    ) merged
    ORDER BY priority, ord LIMIT _room
  )
  -- include: grant
  _soon := _soon OR _taken < _chosen.jobs AND NOT _cut;
END
$body$;

-- name: promote
-- Moves delayed jobs, which the caller has locked, to waiting, in the given order.
-- Called by: grant_by_id, promote_due.
-- MARK.key = 1
CREATE FUNCTION promote(_queue int, _due tid[], INOUT _change journal) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _sum record;
BEGIN
  WITH promoted AS (
    UPDATE jobs SET state =
      -- include: waiting-state
      , lock_key =
      -- include: waiting-key
      , ord = _base + due.n, delay = 0, due_at = NULL
    FROM unnest(_due) WITH ORDINALITY due(at, n) WHERE jobs.ctid = due.at RETURNING due.n, id, priority,
      CASE WHEN marks & 1 > 0 THEN lock_key END AS member
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
    event('waiting', array_agg(id ORDER BY n), '{"prev":"delayed"}') AS body,
    array_agg(member) FILTER (WHERE member IS NOT NULL) AS entered
  INTO _sum FROM promoted;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  IF _sum.entered IS NOT NULL THEN PERFORM note_groups(_queue, NULL, _sum.entered::text[]); END IF;
  _change.delayed := _change.delayed - _sum.jobs;
  _change.waiting := _change.waiting + _sum.plain;
  _change.prioritized := _change.prioritized + _sum.jobs - _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END
$body$;

-- name: promote_due
-- Moves delayed jobs that are due to waiting.
-- Called by: take.
-- States: 2 delayed.
-- PROMOTED_AT_ONCE = 500: how many delayed jobs one claim moves to waiting.
CREATE FUNCTION promote_due(_queue int, _now bigint, _change journal) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN promote(
    _queue,
    ARRAY(
      SELECT ctid FROM jobs WHERE queue = _queue AND state = 2 AND due_at <= _now AND (xmax = 0 OR untouched(xmax))
      ORDER BY due_at, ord LIMIT 500 FOR UPDATE SKIP LOCKED
    ), _change
  );
END
$body$;

-- name: room_under_cap
-- Returns how many more jobs a session may claim under the cap of its queue: roomUnderCap of job/cap.ts.
-- Called by: take.
-- States: 3 active.
CREATE FUNCTION room_under_cap(
  _queue int, _session text, _most float8, _active bigint, _now bigint
) RETURNS float8 LANGUAGE plpgsql AS $body$
DECLARE
  _free float8 := greatest(0, _most - _active);
BEGIN
  RETURN (
    WITH claimants AS MATERIALIZED (
      SELECT id = _session AS own, slots,
        (
          SELECT count(*) FROM (
            SELECT FROM jobs j WHERE j.queue = _queue AND j.state = 3 AND j.session = s.id ORDER BY fence OFFSET 0
          ) held
        ) AS active
      FROM (SELECT * FROM sessions WHERE queue = _queue AND reaped < 2 AND expires_at > _now ORDER BY look_at OFFSET 0) s
      WHERE reaped = 0
    ), sharing AS (
      SELECT greatest(1, floor(_most / greatest(1, count(*) FILTER (WHERE slots > 0)))) AS share FROM claimants
    ), unused AS (SELECT own, greatest(0, least(share, slots) - active) AS jobs FROM claimants, sharing)
    SELECT least(
      _free, greatest(coalesce(sum(jobs) FILTER (WHERE own), 0), _free - coalesce(sum(jobs) FILTER (WHERE NOT own), 0))
    )
    FROM unused
  );
END
$body$;

-- part: take
-- Takes up to _count jobs, of _left, on the fast paths of claim and settle. If they are too large for one reply, all of them go back, and
-- `grant_locks` takes those that fit. Summing up the sizes before jobs are taken would cost every claim 3 % of the server's time, and few
-- queues have such jobs. A job that goes back loses the start of its earlier run. Sets _next: those that are next jobs of schedules.
-- States: 1 waiting, 3 active.
-- REPLY_BYTES = 4194304
-- MARK.next = 16
IF _count = 1 AND _left > 0 THEN
  UPDATE jobs
  SET state = 3, session = _session, claim_seq = _seq, processed_on = _now, processed_by = _by, ends_at = NULL, timed = false,
    attempts_started = attempts_started + 1, fence = nextval('fences')
  WHERE ctid = (
    SELECT * FROM (
      SELECT ctid FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
      ORDER BY ord LIMIT 1 FOR UPDATE SKIP LOCKED
    ) s
  )
  RETURNING event('active', ARRAY[id]),
    -- The same as `claimed-arrays` for one row, measured by its data alone: adding up sizes takes 1 % of a call, and a large progress is
    -- rare.
    json_build_array(
      ARRAY[id], ARRAY[name], ARRAY[CASE WHEN octet_length(data) <= _inline THEN data END], ARRAY[opts], NULL, ARRAY[priority], NULL,
      ARRAY[timestamp], ARRAY[attempts_made], ARRAY[attempts_started], ARRAY[stalled_counter], ARRAY[processed_on], NULL, NULL, NULL,
      ARRAY[failed_reason], ARRAY[stacktrace], ARRAY[progress], ARRAY[fence], NULL, CASE WHEN extras IS NOT NULL THEN json_build_object(id, extras) END
    )::text
    , CASE WHEN marks & 16 > 0 THEN ARRAY[id] END
  INTO _active, _rows, _next;
  GET DIAGNOSTICS _taken = ROW_COUNT;
ELSIF _count > 0 AND _left > 0 THEN
  WITH next AS (
    SELECT at, nextval('fences') AS fence FROM (
      SELECT * FROM (
        SELECT ctid AS at FROM jobs
        WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
        ORDER BY ord LIMIT _count FOR UPDATE SKIP LOCKED
      ) s
    ) waiting
  ), taken AS (
    UPDATE jobs
    SET state = 3, session = _session, claim_seq = _seq, processed_on = _now, processed_by = _by, ends_at = NULL, timed = false,
      attempts_started = attempts_started + 1, fence = next.fence
    FROM next WHERE jobs.ctid = next.at
    RETURNING
      -- include: claimed-columns
      , octet_length(data) + coalesce(octet_length(progress), 0) AS size
  )
  SELECT count(*),
    -- include: claimed-arrays
    , event('active', array_agg(id)), sum(size), array_agg(id) FILTER (WHERE marks & 16 > 0)
  INTO _taken, _rows, _active, _bytes, _next FROM (SELECT * FROM taken ORDER BY fence) taken;
  IF _taken = 0 OR _bytes > 4194304 THEN
    UPDATE jobs
    SET state = 1, session = NULL, fence = NULL, claim_seq = NULL, attempts_started = attempts_started - 1,
      processed_on = CASE WHEN attempts_started > 1 THEN processed_on END,
      processed_by = CASE WHEN attempts_started > 1 THEN processed_by END
    WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq;
    _taken := 0;
    _bytes := 0;
    _rows := NULL;
    _next := NULL;
    _active := NULL;
  END IF;
ELSE
  _taken := 0;
END IF;

-- part: take-variables
-- The variables of take. They have no defaults, and the statements of take do as much as possible beside their main work. Each
-- expression that a function evaluates separately is set up again in every transaction, for about 1 µs.
_plain boolean;
_head bigint;
_left bigint;
_due bigint;
_undone boolean;
_taken int;
_bytes bigint;
_more boolean;
_rows text;
_next text[];
_active text;
_rest record;
_change journal;

-- part: take-rest
-- Starts the runs of next jobs that take took, and takes the jobs that it missed. It runs after the journal was written.
IF _next IS NOT NULL OR _taken < _count AND _taken < _left THEN
  IF _next IS NOT NULL THEN _rows := concat_ws(',', _rows, start_runs(_queue, _next)); END IF;
  IF _taken < _count AND _taken < _left THEN
    -- Something lies below the head, because its transaction committed late; or was changed while it was being locked; or is large.
    _rest := grant_locks(
      _queue, _session, _seq, _by, NULL, _clock, 0, _count - _taken, false, no_change(_queue), _rows, _inline, coalesce(_bytes, 0),
      true
    );
    _more := _rest._cut;
    _taken := _taken + _rest._taken;
    _rows := _rest._jobs;
    _change := _rest._change;
    -- include: note
  END IF;
END IF;

-- part: plain-look
-- Selects from `q` and `j`: where the list begins, how many jobs wait, when the first delayed job is due, whether something is undone,
-- and whether the fast path applies.
-- States: 1 waiting.
q.head_waiting, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0),
-- include: first-due
,
-- include: any-undone
, NOT q.grouped AND
-- include: unlimited
  AND q.prioritized + coalesce(j.prioritized, 0) <= 0
  AND (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL AND NOT
-- include: any-keyed

-- part: first-due
-- When the first delayed job of the queue `q` is due. `j`: the sums of its journal.
-- States: 2 delayed.
CASE WHEN q.delayed + coalesce(j.delayed, 0) > 0 THEN (
  SELECT due_at FROM jobs WHERE queue = _queue AND state = 2 ORDER BY due_at LIMIT 1
) END

-- part: undoubted
-- The session `s` is open, and not suspected.
s.reaped + 0 = 0 AND s.expires_at > _now AND NOT s.suspected

-- part: grant
-- Grants the locks of the rows of `waiting` in their order, as far as the reply has room beside the _used bytes. The other rows stay locked
-- until the commit. That is soon: a claim moves no payloads, and its caller requests fewer jobs the next time (fitting.ts).
-- States: -2 grouped, 3 active.
-- REPLY_BYTES = 4194304
-- MARK.next = 16
, next AS (
  SELECT at, size, CASE WHEN upto + _used <= 4194304 OR (upto = size AND _used = 0) THEN nextval('fences') END AS fence
  FROM (SELECT at, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM waiting) fitting
), taken AS (
  UPDATE jobs
  SET state = 3, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock), processed_by = _by,
    ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1,
    lock_key = CASE WHEN jobs.state = -2 THEN NULL ELSE lock_key END
  FROM next WHERE jobs.ctid = next.at AND next.fence IS NOT NULL
  RETURNING
    -- include: claimed-columns
    , next.size
)
SELECT count(*), count(*) FILTER (WHERE priority = 0),
  -- include: claimed-arrays
  , event('active', array_agg(id)), coalesce(sum(size), 0), EXISTS (SELECT FROM next WHERE fence IS NULL),
  array_agg(id) FILTER (WHERE marks & 16 > 0)
INTO _taken, _plain, _rows, _body, _bytes, _cut, _next FROM (SELECT * FROM taken ORDER BY fence) taken;
IF _taken > 0 THEN
  _jobs := concat_ws(',', _jobs, _rows, CASE WHEN _next IS NOT NULL THEN start_runs(_queue, _next) END);
  _change.active := _change.active + _taken;
  _change.waiting := _change.waiting - _plain;
  _change.prioritized := _change.prioritized - _taken + _plain;
  _change.events := _change.events + _taken;
  _change.body := concat_ws(',', _change.body, _body);
END IF;

-- part: claimed-arrays
-- Packs claimed jobs: an array per column of JobArrays in record.ts. Null stands for columns that are the same in all jobs of a claim, or
-- never set.
json_build_array(
  array_agg(id), array_agg(name), array_agg(CASE WHEN size <= _inline THEN data END), array_agg(opts), NULL, array_agg(priority),
  NULL, array_agg(timestamp), array_agg(attempts_made), array_agg(attempts_started), array_agg(stalled_counter),
  array_agg(processed_on), NULL, NULL, NULL, array_agg(failed_reason), array_agg(stacktrace),
  array_agg(CASE WHEN size <= _inline THEN progress END), array_agg(fence), NULL,
  json_object_agg(id, extras) FILTER (WHERE extras IS NOT NULL)
)::text

-- part: claimed-columns
-- The columns that `claimed-arrays` packs.
jobs.id, jobs.name, jobs.data, jobs.opts, jobs.priority, jobs.timestamp, jobs.attempts_made, jobs.attempts_started,
jobs.stalled_counter, jobs.processed_on, jobs.failed_reason, jobs.stacktrace, jobs.progress, jobs.fence, jobs.marks, jobs.extras

-- part: waiting-in-order
-- Locks up to _most waiting jobs without a key in each stretch of their list, the first ones first: jobs at the front, jobs without a
-- priority behind the head, and jobs with a priority, without the stretches that have no living row (find_dead_ranges).
-- States: 1 waiting.
-- LAST_PRIORITY = 2147483647
SELECT * FROM (
  SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
  WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 AND (xmax = 0 OR untouched(xmax))
  ORDER BY ord LIMIT _most FOR UPDATE SKIP LOCKED
) s
UNION ALL
SELECT * FROM (
  SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
  WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
  ORDER BY ord LIMIT _most FOR UPDATE SKIP LOCKED
) s
UNION ALL
SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
  LATERAL (
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head AND (xmax = 0 OR untouched(xmax))
      ORDER BY priority, ord LIMIT _most FOR UPDATE SKIP LOCKED
    ) s
  ) s

-- part: waiting-chosen
-- Locks the chosen jobs with a key.
-- States: 1 waiting.
SELECT j.* FROM unnest(_chosen.ids) o(id),
  LATERAL (
    SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
    WHERE queue = _queue AND id = o.id AND state + 0 <= 1 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
  ) j

-- part: choose-in-turn
-- Chooses the jobs that come first, of those without a key and of the first jobs of free keys, without locking any. Sets _chosen: how many,
-- how many without a key, and the ids of the others. The stretches are those of `waiting-in-order`.
-- States: 1 waiting.
-- LAST_PRIORITY = 2147483647
SELECT count(*) AS jobs, count(*) FILTER (WHERE id IS NULL) AS plain, array_agg(id) FILTER (WHERE id IS NOT NULL) AS ids
INTO _chosen
FROM (
  SELECT * FROM (
    SELECT * FROM (
      SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0
      ORDER BY ord LIMIT _room
    ) s
    UNION ALL
    SELECT * FROM (
      SELECT priority, ord, NULL::text AS id FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head
      ORDER BY ord LIMIT _room
    ) s
    UNION ALL
    SELECT s.* FROM unnest(0 || _priorities, _priorities || 2147483647, _heads || 0::bigint) alive(after, priority, head),
      LATERAL (
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority > alive.after AND priority < alive.priority
          ORDER BY priority, ord LIMIT _room
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord < 0 ORDER BY priority, ord LIMIT _room
        ) s
        UNION ALL
        SELECT * FROM (
          SELECT priority, ord, NULL::text AS id FROM jobs
          WHERE queue = _queue AND state = 1 AND priority = alive.priority AND ord >= alive.head
          ORDER BY priority, ord LIMIT _room
        ) s
      ) s
    UNION ALL
    SELECT j.* FROM unnest(_first._ids) o(id),
      LATERAL (SELECT priority, ord, id FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
  ) merged
  ORDER BY priority, ord LIMIT _room
) chosen;
