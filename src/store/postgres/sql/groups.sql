-- Groups: turns, places and limits.

-- name: be_grouped
-- Makes a queue one with groups, the first time.
-- Called by: ensure_groups, put_jobs.
CREATE FUNCTION be_grouped(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue AND NOT grouped;
  IF FOUND THEN
    UPDATE queues SET grouped = true WHERE queue = _queue;
    INSERT INTO groups (queue, key, turn, last_turn, place) VALUES (_queue, '', 0, 0, false) ON CONFLICT (queue, key) DO NOTHING;
  END IF;
END
$body$;

-- name: ensure_groups
-- Creates a queue with groups, if it is none yet. A user's transaction must not do it: it would hold the row of the queue until its end.
-- Called by: add.ts.
CREATE FUNCTION ensure_groups(_name text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM be_grouped(queue_of(_name));
  RETURN 'null';
END
$body$;

-- name: choose_turns
-- Decides whose turn it is, for up to _room jobs: the rule of contract/groups.ts. Locks the rows of the groups that come first, but no job.
-- A member that was served comes last, so the turns go round: first each member once, by number and key, then each that has more, and so
-- on. _plain: how many jobs without a group may be taken, and then how many are. _dealt: how many jobs are taken in all. _keys, _took,
-- _turns: the groups, how many turns each has, and its number then; null: it is out of line. _begins: the numbers before. _plain_begins,
-- _plain_turn: the number of the jobs without a group, before and then. _last: the number of the last turn.
-- Called by: grant_groups.
CREATE FUNCTION choose_turns(
  _queue int, _now bigint, _room int, INOUT _plain bigint, OUT _dealt int, OUT _keys text[], OUT _took int[], OUT _begins bigint[],
  OUT _turns bigint[], OUT _plain_begins bigint, OUT _plain_turn bigint, OUT _last bigint, OUT _soon boolean
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint;
  _noted boolean;
  _rested boolean;
  _locked record;
  _one record;
  _waits bigint[] := '{}';
  _caps bigint[] := '{}';
  _from bigint := 0;
  _rounds bigint;
  _groups int := 0;
  _jobs bigint := 0;
BEGIN
  _soon := false;
  SELECT turn, turn, last_turn, '{}', '{}', (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL, (
    SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1
  ) <= _now
  INTO _plain_begins, _plain_turn, _last, _keys, _begins, _noted, _rested FROM groups WHERE queue = _queue AND key = '';
  IF _noted THEN _soon := count_groups(_queue, _room); END IF;
  IF _rested THEN
    -- Lets the groups whose rest is over back into the ring.
    -- RESTS_AT_ONCE = 500
    UPDATE groups SET rests_until = NULL
    WHERE ctid = ANY (
      ARRAY(
        SELECT ctid FROM groups WHERE queue = _queue AND rests_until IS NOT NULL AND rests_until <= _now
          AND (xmax = 0 OR untouched(xmax))
        ORDER BY rests_until LIMIT 500 FOR UPDATE SKIP LOCKED
      )
    );
  END IF;
  LOOP
    -- Locks the next groups of the ring, and appends them to the lists. Of each it counts one waiting job more than turns come to it, if
    -- each of them has enough. _caps: the turns that a group may have. _groups, _jobs: how many groups have a turn, and how many turns they
    -- have.
    -- States: -2 grouped, 0 keyed.
    SELECT count(*) AS many, array_agg(key) AS keys, array_agg(turn) AS turns, array_agg(active) AS active,
      array_agg(CASE WHEN paused THEN 0 ELSE max_active END) AS max_active, array_agg(rate_max) AS rate_max,
      array_agg(CASE WHEN window_ends > _now THEN window_used ELSE 0 END) AS used
    INTO _locked
    FROM (
      SELECT * FROM groups
      WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND key <> ALL (_keys)
        AND (turn, key) >= (_from, '') AND (xmax = 0 OR untouched(xmax))
      ORDER BY turn, key LIMIT _room FOR UPDATE SKIP LOCKED
    ) s;
    _rounds := coalesce(_rounds, ceil(_room::float8 / greatest(1, _locked.many)));
    -- In a statement after the locks: a change of the limits holds them too.
    SELECT array_agg(waits) AS waits, array_agg(cap) AS caps, count(*) FILTER (WHERE least(waits, cap) > 0) AS groups,
      coalesce(sum(least(waits, cap, _rounds)), 0) AS jobs
    INTO _one
    FROM (
      SELECT w.waits, greatest(0, least(
        coalesce(o.max_active, q.group_max, 'infinity') - o.active, coalesce(o.rate_max, q.group_rate_max, 'infinity') - o.used, _room
      ))::bigint AS cap
      FROM queues q,
        unnest(_locked.keys, _locked.active, _locked.max_active, _locked.rate_max, _locked.used) o(key, active, max_active, rate_max, used),
        LATERAL (
          SELECT count(*) AS waits FROM (
            SELECT FROM jobs WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
            ORDER BY priority, ord LIMIT _rounds + 1
          ) s
        ) w
      WHERE q.queue = _queue
    ) found;
    _from := _locked.turns[_locked.many];
    _keys := _keys || _locked.keys;
    _begins := _begins || _locked.turns;
    _waits := _waits || _one.waits;
    _caps := _caps || _one.caps;
    _groups := _groups + _one.groups;
    _jobs := _jobs + _one.jobs;
    EXIT WHEN _locked.many < _room OR _groups >= _room;
  END LOOP;
  -- After the locks: a claim that began earlier and locks later must not give lower numbers.
  _base := nextval('places');
  -- Counts more waiting jobs where some groups have too few for their turns, so that other groups have more turns.
  WHILE _rounds < _room AND _jobs + least(_plain, _rounds) < _room LOOP
    _rounds := CASE WHEN EXISTS (SELECT FROM unnest(_waits, _caps) o(waits, cap) WHERE waits > _rounds AND cap > _rounds) THEN 2 * _rounds
      ELSE _room END;
    SELECT array_agg(w.waits ORDER BY n), sum(least(w.waits, cap, _rounds)) INTO _waits, _jobs
    FROM unnest(_keys, _waits, _caps) WITH ORDINALITY o(key, waits, cap, n),
      LATERAL (SELECT CASE WHEN least(o.waits, o.cap) > 0 THEN group_waits(_queue, o.key, _rounds + 1) ELSE o.waits END AS waits) w;
    _jobs := coalesce(_jobs, 0);
  END LOOP;
  -- Deals out the turns. A turn of the jobs without a group does not count where no group may be served.
  SELECT coalesce(sum(took), 0), coalesce(array_agg(took ORDER BY n) FILTER (WHERE n > 0), '{}'),
    coalesce(array_agg(CASE WHEN waits <= took THEN NULL WHEN took = 0 THEN turn ELSE _base + last END ORDER BY n) FILTER (WHERE n > 0), '{}'),
    coalesce(max(took) FILTER (WHERE n = 0), 0), coalesce(_base + max(counted) FILTER (WHERE n = 0), _plain_turn),
    coalesce(_base + greatest(max(last) FILTER (WHERE n > 0), max(counted) FILTER (WHERE n = 0)), _last)
  INTO _dealt, _took, _turns, _plain, _plain_turn, _last
  FROM (
    SELECT n, min(turn) AS turn, min(waits) AS waits, count(place) FILTER (WHERE place <= _room) AS took,
      max(place) FILTER (WHERE place <= _room) AS last,
      max(place) FILTER (WHERE place <= _room AND place - round < total) AS counted
    FROM (
      SELECT n, turn, waits, round, (SELECT sum(least(waits, cap)) FROM unnest(_waits, _caps) o(waits, cap)) AS total,
        CASE WHEN round IS NOT NULL THEN row_number() OVER (ORDER BY round, turn, key) END AS place
      FROM (
        SELECT n, key COLLATE "C" AS key, turn, waits, round
        FROM unnest(_keys, _begins, _waits, _caps) WITH ORDINALITY o(key, turn, waits, cap, n)
        LEFT JOIN LATERAL generate_series(1, least(waits, cap, _rounds)) round ON true
        UNION ALL
        SELECT 0, '', _plain_begins, 0, round FROM generate_series(1, least(_plain, _rounds)) round
      ) members
    ) places
    GROUP BY n
  ) dealt;
END
$body$;

-- name: count_groups
-- Applies notes of groups to the rows of the groups that no other transaction holds: places that came free, and groups that come into line.
-- They get the number of the last turn. _soon: notes are left. A group without a row gets one, if no other transaction makes rows: an
-- insertion would wait for another one of the same row.
-- Called by: choose_turns, lock_groups_of, settle_groups, upkeep.
-- NOTES_AT_ONCE = 100: how many notes one call applies, beside two for each job that a claim may take: a new group takes about 50 µs.
CREATE FUNCTION count_groups(_queue int, OUT _soon boolean, _room int DEFAULT 0) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _noted record;
  _new text[];
  _locked text[];
  _most float8;
  _last bigint;
BEGIN
  SELECT array_agg(number) AS numbers, array_agg(DISTINCT key) AS keys INTO _noted
  FROM (SELECT number, key FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 100 + 2 * _room) noted;
  _soon := false;
  IF _noted.numbers IS NULL THEN RETURN; END IF;
  _new := ARRAY(
    SELECT k.key FROM unnest(_noted.keys) k(key) WHERE NOT EXISTS (SELECT FROM groups g WHERE g.queue = _queue AND g.key = k.key)
  );
  IF cardinality(_new) > 0 AND pg_try_advisory_xact_lock(groups_lock(_queue)) THEN
    INSERT INTO groups (queue, key) SELECT _queue, key FROM unnest(_new) key ON CONFLICT (queue, key) DO NOTHING;
  END IF;
  _locked := ARRAY(
    SELECT g.key FROM unnest(_noted.keys) o(key),
      LATERAL (
        SELECT key FROM groups g WHERE g.queue = _queue AND g.key = o.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
      ) g
  );
  -- After the locks, also that of new rows: a change of the limits holds them too.
  SELECT group_max INTO _most FROM queues WHERE queue = _queue;
  SELECT last_turn INTO _last FROM groups WHERE queue = _queue AND key = '';
  WITH gone AS (
    DELETE FROM group_notes WHERE queue = _queue AND number = ANY (_noted.numbers) AND key = ANY (_locked)
    RETURNING key, freed, entered
  ), sums AS (SELECT key, sum(freed) AS freed, bool_or(entered) AS entered FROM gone GROUP BY key), o AS MATERIALIZED (
    SELECT s.*, g.at FROM sums s, LATERAL (SELECT ctid AS at FROM groups g WHERE g.queue = _queue AND g.key = s.key OFFSET 0) g
  )
  UPDATE groups g
  SET active = g.active - o.freed, turn = CASE WHEN o.entered THEN coalesce(g.turn, _last, 0) ELSE g.turn END,
    place = group_place(g.paused, g.active - o.freed, g.max_active, _most)
  FROM o WHERE g.ctid = o.at;
  _soon := cardinality(_locked) < cardinality(_noted.keys) OR cardinality(_noted.numbers) = 100 + 2 * _room;
END
$body$;

-- name: forget_groups
-- Forgets the settings, blocks, windows and turns of groups. The limits of all groups stay while a session is open. The caller holds the
-- rows of the queue and of its groups.
-- Called by: forget.
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

-- name: free_places
-- Frees the places of jobs that left active in their groups (_freed: a key for each job). The rows of groups that another transaction
-- holds, or has just changed, get notes instead (count_groups). Returns whether a group may have a place that had none.
-- A place that came free never takes a place away: the limit that this statement sees may have been replaced meanwhile.
-- Called by: carry_out, settle_groups.
CREATE FUNCTION free_places(_queue int, _freed text[]) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _shown boolean;
BEGIN
  WITH freed AS MATERIALIZED (
    SELECT key COLLATE "C" AS key, count(*)::int AS jobs FROM unnest(_freed) key GROUP BY 1
  ), held AS MATERIALIZED (
    SELECT f.*, g.at, g.place FROM freed f,
      LATERAL (
        SELECT ctid AS at, place FROM groups g
        WHERE g.queue = _queue AND g.key = f.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
      ) g
  ), written AS (
    UPDATE groups g
    SET active = g.active - held.jobs,
      place = g.place OR group_place(
        g.paused, g.active - held.jobs, g.max_active, (SELECT group_max FROM queues WHERE queue = _queue)
      )
    FROM held WHERE g.ctid = held.at RETURNING held.key, held.place
  ), noted AS (
    INSERT INTO group_notes (queue, key, freed, entered)
    SELECT _queue, key, jobs, false FROM freed WHERE key <> ALL (ARRAY(SELECT key FROM written)) RETURNING false AS place
  )
  SELECT NOT bool_and(place) INTO _shown FROM (SELECT place FROM written UNION ALL SELECT place FROM noted) done;
  RETURN _shown;
END
$body$;

-- name: grant_groups
-- The same as grant_in_turn for queues with groups: claims take turns between the groups, and the jobs without a group are one more.
-- Called by: take.
-- _keyed: jobs with a key may be claimed. _inline: the long texts of a larger job (bytes) are left out (large_values).
CREATE FUNCTION grant_groups(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int, _keyed boolean, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _asked int := _room;
  _first record;
  _chosen record;
  _turn record;
  _most int;
  _took int[];
  _used bigint := 0;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  _soon := false;
  -- Sets _chosen, as `choose-in-turn` in claim.sql does. Most queues with groups have no other jobs.
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
  _turn := choose_turns(_queue, floor(_clock)::bigint, _room, _chosen.jobs);
  _soon := _soon OR _turn._soon;
  _room := _turn._plain;
  IF _room = 0 THEN
    -- Most claims: a statement that also finds other jobs takes longer to set up than to run.
    WITH waiting AS (
      SELECT at, size FROM (
        -- include: waiting-in-groups
      ) s
      ORDER BY round, turn, key
    )
    -- include: grant
  ELSE
    _most := least(_chosen.plain, _room);
    WITH waiting AS (
      SELECT at, size FROM (
        SELECT at, size, row_number() OVER (ORDER BY priority, ord) AS round, _turn._plain_begins AS turn, '' COLLATE "C" AS key FROM (
          SELECT * FROM (
            -- include: waiting-in-order
            UNION ALL
            -- include: waiting-chosen
          ) merged
          ORDER BY priority, ord LIMIT _room
        ) plain
        UNION ALL
        SELECT * FROM (
          -- include: waiting-in-groups
        ) s
      ) merged
      ORDER BY round, turn, key
    )
    -- include: grant
  END IF;
  -- Writes the rows of the groups, and the numbers of the queue, unless another claim is about to write these. Where jobs were left out,
  -- the jobs that were taken are counted by group. If other transactions hold groups in line, the claim should be retried soon.
  -- States: 3 active.
  -- MARK.key = 1
  _soon := _soon OR _taken < _turn._dealt AND NOT _cut;
  IF _taken < _asked AND NOT _soon THEN
    _soon := EXISTS (
      SELECT FROM groups
      WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND key <> ALL (_turn._keys) LIMIT 1
    );
  END IF;
  _took := _turn._took;
  IF _taken < _turn._dealt THEN
    _took := ARRAY(
      SELECT (
        SELECT count(*) FROM (
          SELECT extras::json ->> 'g' AS key FROM jobs
          WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq AND marks & 1 > 0 ORDER BY fence OFFSET 0
        ) j WHERE j.key = k.key
      ) FROM unnest(_turn._keys) WITH ORDINALITY k(key, n) ORDER BY n
    );
  END IF;
  PERFORM write_turns(
    _queue, _clock, _turn._keys, _took, _turn._turns, _turn._took, _turn._last, CASE WHEN _taken > 0 THEN _turn._plain_turn END
  );
END
$body$;

-- name: group_has_place
-- Returns whether a group has a place beside _more further jobs. The caller holds the row of the group.
-- Called by: grant_by_id.
CREATE FUNCTION group_has_place(_queue int, _key text, _more int) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT group_place(g.paused, g.active + _more, g.max_active, q.group_max) FROM groups g, queues q
    WHERE g.queue = _queue AND g.key = _key AND q.queue = _queue
  );
END
$body$;

-- name: group_place
-- Returns whether a further job of a group may be active. _own, _common: the limits of the group and of all groups.
-- Called by: many.
CREATE FUNCTION group_place(
  _paused boolean, _active float8, _own float8, _common float8
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $body$
SELECT NOT _paused AND _active < coalesce(_own, _common, 'infinity')
$body$;

-- name: group_rest
-- Returns the end of the block or of the used window that keeps a group from claims in turn; null: none does. _own, _common: as in
-- group_place, of the rate.
-- Called by: many.
CREATE FUNCTION group_rest(
  _blocked bigint, _ends bigint, _used float8, _own float8, _common float8, _now bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $body$
SELECT greatest(
  CASE WHEN _blocked > _now THEN _blocked END, CASE WHEN _ends > _now AND _used >= coalesce(_own, _common) THEN _ends END
)
$body$;

-- name: group_waits
-- Returns how many jobs of a group wait, up to _most.
-- Called by: choose_turns, forget_groups, groups_of, list_jobs, rest_ends.
-- States: -2 grouped, 0 keyed.
CREATE FUNCTION group_waits(_queue int, _key text, _most bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $body$
BEGIN
  RETURN (
    SELECT count(*) FROM (
      SELECT FROM jobs WHERE queue = _queue AND lock_key = _key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
      ORDER BY priority, ord LIMIT _most
    ) waits
  );
END
$body$;

-- name: groups_lock
-- Returns the number of the advisory lock of the rows of groups: a transaction that makes rows of groups holds it until its commit. A
-- change of limits changes the rows that it sees, so no row may be made meanwhile. Claims by id share the lock, and wait for one another's
-- rows in the order of the keys. Claims in turn and changes of limits hold it alone. A transaction takes it before the rows of groups.
-- Claims in turn hold the row of the queue by then, so they do not wait for it.
-- Called by: count_groups, lock_groups_of, lock_groups.
CREATE FUNCTION groups_lock(_queue int) RETURNS bigint LANGUAGE sql STABLE AS $body$
SELECT hashtextextended('', (_queue::bigint << 32) # 'groups'::regclass::oid::bigint)
$body$;

-- name: groups_of
-- Returns the limits of all groups, and groups by their keys (_keys) or a page of them: those that have waiting or active jobs, or
-- settings.
-- Called by: inspect.ts.
CREATE FUNCTION groups_of(_name text, _keys text[], _limit int, _after text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _now bigint := floor(clock_ms());
  _queue int := (SELECT queue FROM queues WHERE name = _name);
BEGIN
  RETURN (
    SELECT json_build_object(
      'rules', (
        SELECT json_strip_nulls(
          json_build_object('maxActive', q.group_max, 'rate', CASE WHEN q.group_rate_max IS NOT NULL THEN json_build_object(
            'max', q.group_rate_max, 'durationMs', q.group_rate_ms
          ) END)
        )
        FROM queues q WHERE q.queue = _queue
      ), 'groups', coalesce(json_agg(
        json_strip_nulls(
          json_build_object('key', key, 'paused', coalesce(paused, false), 'active', active, 'maxActive', max_active, 'rate',
            CASE WHEN rate_max IS NOT NULL THEN json_build_object('max', rate_max, 'durationMs', rate_ms) END, 'limitedMs',
            CASE WHEN rests_until > _now THEN rests_until - _now END, 'waiting',
            CASE WHEN _keys IS NOT NULL THEN group_waits(_queue, key, 9000000000000000) END)
        ) ORDER BY n, key
      ), '[]')
    )
    FROM (
      SELECT k.n, k.key, g.paused, coalesce(g.active, 0) - coalesce(f.freed, 0) AS active, g.max_active, g.rate_max, g.rate_ms,
        g.rests_until
      FROM (
        -- The keys of the groups that a query asks for, with their places: those of _keys, or all that have a row or notes, from the first
        -- one after _after on. A group may have notes and no row yet. Each step takes the next key of one of two indexes, so a page that
        -- stops early reads no further key. It searches that index alone: a search in the other one would walk over the same dead entries
        -- in each step.
        SELECT n, key COLLATE "C" AS key FROM unnest(_keys) WITH ORDINALITY u(key, n)
        UNION ALL
        SELECT 0, key FROM (
          WITH RECURSIVE walk(key, next_row, next_note) AS (
            SELECT NULL COLLATE "C",
              (SELECT g.key FROM groups g WHERE g.queue = _queue AND g.key > coalesce(_after, '') ORDER BY g.key LIMIT 1),
              (SELECT n.key FROM group_notes n WHERE n.queue = _queue AND n.key > coalesce(_after, '') ORDER BY n.key LIMIT 1)
            WHERE _keys IS NULL
            UNION ALL
            SELECT least(next_row, next_note),
              CASE WHEN next_row <= coalesce(next_note, next_row) THEN (
                SELECT g.key FROM groups g WHERE g.queue = _queue AND g.key > next_row ORDER BY g.key LIMIT 1
              ) ELSE next_row END,
              CASE WHEN next_note <= coalesce(next_row, next_note) THEN (
                SELECT n.key FROM group_notes n WHERE n.queue = _queue AND n.key > next_note ORDER BY n.key LIMIT 1
              ) ELSE next_note END
            FROM walk WHERE coalesce(next_row, next_note) IS NOT NULL
          )
          SELECT key FROM walk WHERE key IS NOT NULL
        ) walked
      ) k
      LEFT JOIN LATERAL (SELECT * FROM groups g WHERE g.queue = _queue AND g.key = k.key OFFSET 0) g ON true
      LEFT JOIN LATERAL (SELECT sum(freed) AS freed FROM group_notes n WHERE n.queue = _queue AND n.key = k.key OFFSET 0) f ON true
      WHERE _keys IS NOT NULL OR g.paused OR g.max_active IS NOT NULL OR g.rate_max IS NOT NULL OR g.active > coalesce(f.freed, 0)
        OR group_waits(_queue, k.key, 1) > 0
      LIMIT _limit
    ) found
  );
END
$body$;

-- name: lock_groups
-- Locks the rows of groups, in the order of their keys: those of all groups, or that of one. That one is made if there is none. Until the
-- commit, no other transaction makes rows of groups.
-- Called by: configure, forget.
CREATE FUNCTION lock_groups(_queue int, _key text, _all boolean) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_advisory_xact_lock(groups_lock(_queue));
  -- A row that is there is locked by this too: a sweep may remove it between two statements.
  IF _key IS NOT NULL THEN
    INSERT INTO groups (queue, key) VALUES (_queue, _key) ON CONFLICT (queue, key) DO UPDATE SET paused = groups.paused;
  END IF;
  IF _all THEN PERFORM FROM groups WHERE queue = _queue ORDER BY key FOR UPDATE; END IF;
END
$body$;

-- name: lock_groups_of
-- Locks the groups of jobs for claims by id, in the order of their keys, and applies their notes. These claims hold the jobs already. A
-- deadlock is impossible: a claim in turn waits for no job, and a change of limits waits before it takes groups, and then the queue.
-- Called by: grant_by_id.
-- MARK.key = 1
CREATE FUNCTION lock_groups_of(_queue int, _ids text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _keys text[] := ARRAY(
    SELECT DISTINCT (j.extras::json ->> 'g') COLLATE "C" AS key FROM unnest(_ids) o(id),
      LATERAL (SELECT extras FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND marks & 1 > 0 OFFSET 0) j
    ORDER BY key
  );
BEGIN
  IF cardinality(_keys) = 0 THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(groups_lock(_queue));
  -- A row that is there is locked by this too: a sweep may remove it between two statements.
  INSERT INTO groups (queue, key)
  SELECT _queue, o.key FROM unnest(_keys) WITH ORDINALITY o(key, n) ORDER BY n
  ON CONFLICT (queue, key) DO UPDATE SET active = groups.active;
  PERFORM count_groups(_queue);
END
$body$;

-- name: note_groups
-- Records the groups of jobs that left active (_freed) or began to wait (_entered), for the next claim (count_groups).
-- Called by: leave, promote, put_jobs, send_to_waiting, settle_groups.
CREATE FUNCTION note_groups(_queue int, _freed text[], _entered text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO group_notes (queue, key, freed, entered)
  SELECT _queue, key, count(*) FILTER (WHERE freed), bool_or(NOT freed)
  FROM (SELECT key, true AS freed FROM unnest(_freed) key UNION ALL SELECT key, false FROM unnest(_entered) key) noted
  WHERE key IS NOT NULL GROUP BY key;
END
$body$;

-- name: rest_ends
-- Returns when the rest of a group ends that has a waiting job and a place; null: there is none.
-- Called by: claim, take.
CREATE FUNCTION rest_ends(_queue int, _now bigint) RETURNS bigint LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT g.rests_until FROM queues q,
      LATERAL (
        SELECT *, (SELECT sum(freed) FROM group_notes n WHERE n.queue = g.queue AND n.key = g.key) AS freed FROM groups g
        WHERE g.queue = _queue AND g.rests_until IS NOT NULL AND g.rests_until > _now ORDER BY g.rests_until OFFSET 0
      ) g
    WHERE q.queue = _queue AND group_place(g.paused, g.active - coalesce(g.freed, 0), g.max_active, q.group_max)
      AND group_waits(_queue, g.key, 1) > 0 LIMIT 1
  );
END
$body$;

-- name: set_groups
-- Changes the limits of all groups, or the settings of one group: `groups` and `group` of QueueSettings. The caller has locked the rows of
-- these groups before that of the queue, as claims by id do.
-- Called by: configure.
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

-- name: tend_groups
-- Removes rows of groups that have neither jobs nor settings. It waits for no lock.
-- Called by: upkeep.
-- TENDED_AT_ONCE = 500
CREATE FUNCTION tend_groups(_now bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM groups
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM groups
      WHERE turn IS NULL AND active = 0 AND NOT paused AND max_active IS NULL AND rate_max IS NULL AND blocked_until <= _now
        AND window_ends <= _now AND key <> '' AND (xmax = 0 OR untouched(xmax))
      LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;

-- name: write_turns
-- Writes what a claim has done to groups, whose rows it has locked: active jobs, window, and, in turn, the number in line. _planned: as
-- many jobs as the claim wanted. If it got fewer, the group stays in line. _plain_turn, _last: the numbers of the queue. They are not
-- written if another claim is about to write them.
-- Called by: grant_by_id, grant_groups.
CREATE FUNCTION write_turns(
  _queue int, _clock float8, _keys text[], _took int[], _turns bigint[] DEFAULT NULL, _planned int[] DEFAULT NULL,
  _last bigint DEFAULT NULL, _plain_turn bigint DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
BEGIN
  WITH o AS MATERIALIZED (
    SELECT g.at, g.active + o.took AS active,
      CASE WHEN _turns IS NULL OR o.took = 0 AND o.planned > 0 THEN g.turn WHEN o.took < o.planned THEN coalesce(o.turn, _last)
        ELSE o.turn END AS turn,
      NULL::bigint AS last,
      CASE WHEN o.took = 0 OR g.window_ends > _now OR g.ms IS NULL THEN g.window_ends ELSE ceil(_clock + g.ms)::bigint END AS ends,
      CASE WHEN o.took = 0 THEN g.window_used WHEN g.window_ends > _now THEN g.window_used + o.took ELSE o.took END AS used,
      g.most, g.rate
    FROM queues q, unnest(_keys, _took, _turns, _planned) o(key, took, turn, planned),
      LATERAL (
        SELECT ctid AS at, active, turn, window_ends, window_used, coalesce(max_active, q.group_max) AS most,
          coalesce(rate_max, q.group_rate_max) AS rate, CASE WHEN rate_max IS NULL THEN q.group_rate_ms ELSE rate_ms END AS ms
        FROM groups g WHERE g.queue = _queue AND g.key = o.key OFFSET 0
      ) g
    WHERE q.queue = _queue
    UNION ALL
    SELECT * FROM (
      SELECT ctid, 0, greatest(turn, _plain_turn), greatest(last_turn, _last), window_ends, window_used, 0::float8, NULL::float8 FROM groups
      WHERE queue = _queue AND key = '' AND _plain_turn IS NOT NULL AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
    ) numbers
  )
  UPDATE groups g
  SET active = o.active, turn = o.turn, last_turn = o.last, window_ends = o.ends, window_used = o.used,
    place = group_place(g.paused, o.active, o.most, NULL),
    rests_until = group_rest(g.blocked_until, o.ends, o.used, o.rate, NULL, _now)
  FROM o WHERE g.ctid = o.at;
END
$body$;

-- part: lock-ring
-- Locks the rows of the groups that come first in line, as many as the claim may need. Sets _ring. The numbers of the turns are drawn after
-- the locks: a claim that began earlier and locks later must not give lower numbers. `fence`: the jobs of these turns get higher ones.
-- `rated`: a group has a rate of its own. `near`: one of _groups, whose jobs have ended, may be so near its limit that it gets fewer turns
-- before its places are free.
SELECT count(*) AS many, _count - _all AS asked, nextval('places') AS base, nextval('fences') AS fence, array_agg(key) AS keys,
  array_agg(active) AS active, array_agg(max_active) AS max_active, coalesce(bool_or(rate_max IS NOT NULL), false) AS rated, (
    SELECT bool_or(g.active + _count > coalesce(g.max_active, _look.group_max)) FROM unnest(_groups) o(key),
      LATERAL (SELECT active, max_active FROM groups g WHERE g.queue = _queue AND g.key = o.key OFFSET 0) g
  ) AS near
INTO _ring
FROM (
  SELECT key, active, CASE WHEN paused THEN 0 ELSE max_active END AS max_active, rate_max FROM groups
  WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND (xmax = 0 OR untouched(xmax))
  ORDER BY turn, key LIMIT _count - _all FOR UPDATE SKIP LOCKED
) s;

-- part: waiting-in-groups
-- Locks as many jobs of each group as it has turns.
-- States: -2 grouped, 0 keyed.
SELECT j.at, j.size, row_number() OVER (PARTITION BY m.n ORDER BY j.priority, j.ord) AS round, m.turn, m.key COLLATE "C" AS key
FROM unnest(_turn._keys, _turn._took, _turn._begins) WITH ORDINALITY m(key, took, turn, n),
  LATERAL (
    SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
    WHERE queue = _queue AND lock_key = m.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
      AND (xmax = 0 OR untouched(xmax))
    ORDER BY priority, ord LIMIT m.took FOR UPDATE SKIP LOCKED
  ) j
