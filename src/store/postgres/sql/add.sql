-- Adding jobs.

-- name: add
-- Adds jobs.
-- _marks, _extras: see marks.ts. _dedups: the deduplication of each job, as JSON.
-- Called by: add.ts.
CREATE FUNCTION add(
  _name text, _caller text, _seq bigint, _ids text[], _names text[], _data text[], _opts text[],
  _priorities int[], _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[],
  _marks smallint[] DEFAULT NULL, _extras text[] DEFAULT NULL, _dedups text[] DEFAULT NULL
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := queue_of(_name);
  _last bigint;
  _reply text;
  _got record;
  _change journal;
BEGIN
  IF _caller IS NOT NULL THEN
    SELECT seq, callers.reply INTO _last, _reply FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    IF NOT FOUND THEN _last := enter_call(_queue, _caller); END IF;
    IF _seq > _last THEN
      _reply := NULL;
    ELSIF _seq < _last THEN
      -- Its caller gave up on it and went on, so the call must not be applied now.
      PERFORM refuse_straggler(_caller, _seq, _last);
    END IF;
    IF _reply IS NOT NULL THEN RETURN _reply; END IF;
    -- A transaction that a user leaves open may hold an id. The call fails soon, because other calls may wait behind it.
    IF _ids IS NOT NULL OR _dedups IS NOT NULL THEN PERFORM set_config('lock_timeout', '2s', true); END IF;
  END IF;
  IF _dedups IS NULL THEN
    _got := put_jobs(
      _queue, clock_ms(), _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras,
      no_change(_queue)
    );
  ELSE
    _got := put_unique(
      _queue, clock_ms(), _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras, _dedups
    );
  END IF;
  _change := _got._change;
  -- include: note
  _reply := _got._reply;
  IF _caller IS NOT NULL THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;

-- name: add_plain
-- The fast path for adding one job without id, lock key, priority, delay or lifo (add.ts). One UPDATE locks the caller, draws the job id
-- and records the reply. If it finds no row, the statement does nothing, and the store falls back to `add`.
-- The commit notifies processes that wait for jobs, if no other transaction is about to notify in the same way: see notify.ts.
-- A function with the same steps took the server 93 µs where this statement takes 61 µs, without commit and folding.
-- Gain: without it, an add takes 1.22 × the processor time (node bench/fast-paths.mjs add_plain).
-- States: 1 waiting.
-- ADVISORY.telling = 1214673783
WITH caller AS (
  UPDATE callers c
  SET seq = :seq, used_at = floor(clock_ms()), reply = '{"first":' || nextval(('ids_' || c.queue)::regclass) || ',"count":1}'
  WHERE c.queue = (SELECT queue FROM queues WHERE name = :queue) AND c.id = :caller AND c.seq < :seq
  RETURNING c.queue, c.used_at AS now, c.reply, lastval()::text AS id, nextval('places') + 1 AS place
), job AS (
  INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, id, name, opts, data)
  SELECT queue, 1, 0, place, place, now, 0, :timestamp::float8, id, :name::text, :opts::text, :data::text FROM caller
)
INSERT INTO journal (queue, waiting, events, body)
SELECT queue, 1, 2,
  '["added",["' || id || '"],{"jobName":[' || to_json(:name::text) || ']}],["waiting",["' || id || '"],null]'
FROM caller
RETURNING (SELECT reply FROM caller),
  CASE WHEN :channel::text IS NOT NULL AND pg_try_advisory_xact_lock(1214673783, 0) THEN pg_notify(:channel, :payload) IS NOT NULL END

-- name: put_jobs
-- Puts new jobs into a queue. _reply: their ids, and which of them are new (null: all).
-- Inserts rows in the order of their ids, so that two calls that add the same ids never deadlock. If a user took a counted id before, the
-- counter steps over that id: the new job must not vanish as its duplicate.
-- Called by: add, put_unique, put_family, put_letter, release_entries, schedule.
CREATE FUNCTION put_jobs(
  _queue int, _clock float8, _ids text[], _names text[], _data text[], _opts text[], _priorities int[],
  _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[],
  INOUT _change journal, OUT _chosen text[], OUT _made bigint[], OUT _reply text
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _counter regclass := 'ids_' || _queue;
  _base bigint := nextval('places');
  _put bigint[];
  _todo bigint[];
  _lanes smallint[];
  _group record;
  _held text[] := _keys;
  _entering text[];
BEGIN
  IF _keys IS NOT NULL THEN
    -- Sets _lanes: of each key, claims need to look at one job.
    -- States: -1 behind, 0 keyed, 1 waiting.
    SELECT array_agg(CASE WHEN key IS NULL THEN 1 WHEN nth = 1 THEN 0 ELSE -1 END ORDER BY n) INTO _lanes
    FROM (
      SELECT key, n, row_number() OVER (PARTITION BY key, delay > 0 ORDER BY priority, CASE WHEN lifo THEN -n ELSE n END) AS nth
      FROM unnest(_keys, _priorities, _delays, _lifos) WITH ORDINALITY k(key, priority, delay, lifo, n)
    ) lanes;
  END IF;
  -- Sets _entering: the groups of the jobs that are to wait. These jobs get the state of waiting jobs of groups (_lanes), and the keys of
  -- their groups (_held).
  -- States: -2 grouped.
  -- MARK.key = 1
  IF (SELECT bool_or(mark & 1 > 0) FROM unnest(_marks) mark) THEN
    PERFORM be_grouped(_queue);
    SELECT array_agg(member ORDER BY n), array_agg(coalesce(member, _keys[n]) ORDER BY n),
      array_agg(CASE WHEN member IS NULL THEN _lanes[n] ELSE -2 END ORDER BY n)
    INTO _entering, _held, _lanes
    FROM (
      SELECT n, CASE WHEN mark & 1 > 0 AND coalesce(_delays[n], 0) <= 0 THEN extra::json ->> 'g' END AS member
      FROM unnest(_marks, _extras) WITH ORDINALITY o(mark, extra, n)
    ) o;
    IF array_remove(_entering, NULL) = '{}' THEN _entering := NULL; END IF;
  END IF;
  IF _marks IS NOT NULL THEN
    -- Lets claims of the queue look for messages if a new job may send a letter.
    -- MARK.letter = 128
    IF (SELECT bool_or(mark & 128 > 0) FROM unnest(_marks) mark) THEN
      PERFORM relate(ARRAY[_queue], ARRAY(SELECT DISTINCT extra::json ->> 'l' FROM unnest(_extras) extra WHERE extra::json ->> 'l' IS NOT NULL));
    END IF;
  END IF;
  IF cardinality(_names) = 1 THEN
    -- Most calls of a producer that waits for each job bring one: the statement for many takes longer to set up.
    _chosen := ARRAY[coalesce(_ids[1], nextval(_counter)::text)];
    -- include: put-job
    FROM (
      SELECT _chosen[1] AS id, _names[1] AS name, _data[1] AS data, _opts[1] AS opts, _priorities[1] AS priority,
        _delays[1] AS delay, _lifos[1] AS lifo, _timestamps[1] AS timestamp, _held[1] AS key, _lanes[1] AS lane,
        _marks[1] AS marks, _extras[1] AS extras, 1 AS n
    ) o
    ON CONFLICT (queue, id) DO NOTHING;
    _made := CASE WHEN FOUND THEN '{1}' ELSE '{}' END;
  ELSE
    SELECT array_agg(coalesce(_ids[o.n], nextval(_counter)::text)) INTO _chosen FROM unnest(_names) WITH ORDINALITY o(name, n);
    _made := '{}';
  END IF;
  WHILE cardinality(_made) < cardinality(_names) LOOP
    WITH put AS (
      -- include: put-job
      FROM unnest(
        _chosen, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _held, _lanes, _marks, _extras
      ) WITH ORDINALITY o(id, name, data, opts, priority, delay, lifo, timestamp, key, lane, marks, extras, n)
      WHERE _todo IS NULL OR n = ANY (_todo) ORDER BY id, n
      ON CONFLICT (queue, id) DO NOTHING RETURNING added - _base AS n
    )
    SELECT array_agg(n) INTO _put FROM put;
    _made := _made || _put;
    EXIT WHEN cardinality(_made) = cardinality(_names);
    SELECT array_agg(n) INTO _todo FROM generate_subscripts(_names, 1) n WHERE _ids[n] IS NULL AND n <> ALL (_made);
    EXIT WHEN _todo IS NULL;
    SELECT array_agg(CASE WHEN n = ANY (_todo) THEN nextval(_counter)::text ELSE _chosen[n] END ORDER BY n) INTO _chosen
    FROM generate_subscripts(_names, 1) n;
  END LOOP;
  IF cardinality(_made) = cardinality(_names) THEN _made := NULL; END IF;
  -- Records new jobs in _change: counts and events. _made: which of them are new; null: all.
  IF _made IS NULL THEN
    _change.events := _change.events + cardinality(_names);
    _change.body := concat_ws(',', _change.body, event('added', _chosen, json_build_object('jobName', _names)));
  ELSE
    -- One that claims were to look at may be a duplicate.
    IF _keys IS NOT NULL THEN
      -- include: free-keys
    END IF;
    IF cardinality(_made) > 0 THEN
      SELECT _change.events + count(*),
        concat_ws(
          ',', _change.body,
          event('added', array_agg(_chosen[n] ORDER BY n), json_build_object('jobName', array_agg(_names[n] ORDER BY n)))
        )
      INTO _change.events, _change.body FROM unnest(_made) n;
    END IF;
  END IF;
  IF _made IS NULL AND _priorities IS NULL AND _delays IS NULL THEN
    -- As most calls are.
    _change.events := _change.events + cardinality(_chosen);
    _change.body := _change.body || ',' || event('waiting', _chosen);
    _change.waiting := _change.waiting + cardinality(_chosen);
  ELSE
    FOR _group IN
      SELECT name, count(*) AS jobs, count(*) FILTER (WHERE coalesce(priority, 0) = 0) AS plain, array_agg(id) AS ids,
        array_agg(ceil(_clock + delay)::bigint) AS dues
      FROM (
        SELECT *, CASE WHEN n <> ALL (_made) THEN 'duplicated' WHEN delay > 0 THEN 'delayed' ELSE 'waiting' END AS name
        FROM unnest(_chosen, _priorities, _delays) WITH ORDINALITY u(id, priority, delay, n)
      ) o
      GROUP BY name ORDER BY name = 'duplicated', name DESC
    LOOP
      _change.events := _change.events + _group.jobs;
      _change.body := concat_ws(
        ',', _change.body,
        event(_group.name, _group.ids, CASE _group.name WHEN 'delayed' THEN json_build_object('delay', _group.dues) END)
      );
      IF _group.name = 'delayed' THEN
        _change.delayed := _change.delayed + _group.jobs;
      ELSIF _group.name = 'waiting' THEN
        _change.waiting := _change.waiting + _group.plain;
        _change.prioritized := _change.prioritized + _group.jobs - _group.plain;
      END IF;
    END LOOP;
  END IF;
  -- Records the groups of the new jobs that wait.
  IF _entering IS NOT NULL THEN
    PERFORM note_groups(
      _queue, NULL, ARRAY(SELECT _entering[n] FROM generate_subscripts(_entering, 1) n WHERE _made IS NULL OR n = ANY (_made))
    );
  END IF;
  -- Sets _reply: the ids of the jobs, and which of them are new. A run of counted ids, which is what most calls get, is told by its two
  -- ends.
  IF _ids IS NULL AND _made IS NULL AND _chosen[cardinality(_chosen)]::bigint - _chosen[1]::bigint = cardinality(_chosen) - 1 THEN
    _reply := json_build_object('first', _chosen[1]::bigint, 'count', cardinality(_chosen));
  ELSE
    _reply := json_build_object('ids', _chosen, 'made', _made);
  END IF;
END
$body$;

-- name: put_unique
-- Puts new jobs, of which some have a deduplication, into a queue, one after the other. _reply: as that of put_jobs, and which of them were
-- deduplicated; the ids of these are those of the owners.
-- Called by: add.
CREATE FUNCTION put_unique(
  _queue int, _clock float8, _ids text[], _names text[], _data text[], _opts text[], _priorities int[],
  _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[],
  _dedups text[], OUT _change journal, OUT _reply text
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _counter regclass := 'ids_' || _queue;
  _chosen text[] := '{}';
  _made int[] := '{}';
  _dropped int[] := '{}';
  _id text;
  _exists boolean;
  _found record;
  _got record;
BEGIN
  _change := no_change(_queue);
  IF cardinality(_names) > 1 THEN PERFORM lock_entries(_queue, _clock, _dedups); END IF;
  FOR _n IN 1 .. cardinality(_names) LOOP
    LOOP
      _id := coalesce(_ids[_n], nextval(_counter)::text);
      _exists := EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _id);
      EXIT WHEN NOT _exists OR _ids[_n] IS NOT NULL;
    END LOOP;
    _chosen := _chosen || _id;
    IF _exists THEN
      -- Not left to the insertion: that would wait for a change of the job, which may wait for an entry.
      _change.events := _change.events + 1;
      _change.body := concat_ws(',', _change.body, event('duplicated', ARRAY[_id]));
      CONTINUE;
    END IF;
    -- Looks for the owner of the deduplication id of job _n. If there is one, the job is dropped or kept as a draft, and the loop goes on.
    IF _dedups[_n] IS NOT NULL THEN
      _found := deduplicate(_queue, _clock, _id, _dedups[_n]::json, _change);
      _change := _found._change;
      IF _found._owner IS NOT NULL THEN
        _chosen[_n] := _found._owner;
        _dropped := _dropped || _n;
        IF _found._kept THEN
          -- Keeps the job _n as the draft of its entry. The entry then has no end, so that the draft is not lost before the owner ends.
          UPDATE dedup
          SET until = NULL, draft = json_build_array(
            _ids[_n], _names[_n], _data[_n], _opts[_n], _priorities[_n], _delays[_n], _lifos[_n], _timestamps[_n], _keys[_n],
            _marks[_n], _extras[_n]
          )
          WHERE queue = _queue AND id = _dedups[_n]::json ->> 'id';
        END IF;
        CONTINUE;
      END IF;
    END IF;
    LOOP
      _got := put_jobs(
        _queue, _clock, ARRAY[_chosen[_n]], _names[_n:_n], _data[_n:_n], _opts[_n:_n], _priorities[_n:_n], _delays[_n:_n],
        _lifos[_n:_n], _timestamps[_n:_n], _keys[_n:_n], _marks[_n:_n], _extras[_n:_n], _change
      );
      EXIT WHEN _got._made IS NULL OR _ids[_n] IS NOT NULL;
      _chosen[_n] := nextval(_counter);
    END LOOP;
    _change := _got._change;
    CONTINUE WHEN _got._made IS NOT NULL;
    _made := _made || _n;
    IF _dedups[_n] IS NOT NULL THEN
      UPDATE dedup SET job = _chosen[_n], until = _found._until, draft = NULL
      WHERE queue = _queue AND id = _dedups[_n]::json ->> 'id';
    END IF;
  END LOOP;
  -- An entry that was locked for a duplicate may name no owner.
  DELETE FROM dedup WHERE queue = _queue AND id = ANY (ARRAY(SELECT d::json ->> 'id' FROM unnest(_dedups) d)) AND job = '';
  _reply := json_build_object('ids', _chosen, 'made', _made, 'dropped', _dropped, 'sent', has_sent());
END
$body$;

-- part: put-job
-- Inserts the jobs `o`.
-- States: 1 waiting, 2 delayed.
INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, due_at, timestamp, id, name, opts, data, lock_key, marks, extras)
SELECT _queue, CASE WHEN delay > 0 THEN 2 ELSE coalesce(lane, 1) END, coalesce(priority, 0),
  CASE WHEN lifo AND coalesce(delay, 0) <= 0 THEN -(_base + n) ELSE _base + n END, _base + n, floor(_clock), coalesce(delay, 0),
  CASE WHEN delay > 0 THEN ceil(_clock + delay) END, timestamp, id, name, opts, data, key, coalesce(marks, 0), extras
