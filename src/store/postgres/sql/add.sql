-- Adds jobs.
-- Inserts rows in the order of their ids, so that two calls that add the same ids never deadlock. If a user took a counted id before, the
-- counter steps over that id: the new job must not vanish as its duplicate.
-- Called by: add.ts.
-- States: -1 behind, 0 keyed, 1 waiting.
CREATE FUNCTION add(
  _name text, _caller text, _seq bigint, _ids text[], _names text[], _data text[], _opts text[],
  _priorities int[], _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := queue_of(_name);
  _counter regclass := 'ids_' || _queue;
  _clock float8 := clock_ms();
  _base bigint;
  _last bigint;
  _reply text;
  _chosen text[];
  _put bigint[];
  _made bigint[] := '{}';
  _todo bigint[];
  _lanes smallint[];
  _change journal;
  _group record;
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
    IF _ids IS NOT NULL THEN PERFORM set_config('lock_timeout', '2s', true); END IF;
  END IF;
  _base := nextval('places');
  IF cardinality(_names) = 1 THEN
    _chosen := ARRAY[coalesce(_ids[1], nextval(_counter)::text)];
  ELSE
    SELECT array_agg(coalesce(_ids[o.n], nextval(_counter)::text)) INTO _chosen FROM unnest(_names) WITH ORDINALITY o(name, n);
  END IF;
  IF _keys IS NOT NULL THEN
    -- Of each key, claims need to look at one.
    SELECT array_agg(CASE WHEN key IS NULL THEN 1 WHEN nth = 1 THEN 0 ELSE -1 END ORDER BY n) INTO _lanes
    FROM (
      SELECT key, n, row_number() OVER (PARTITION BY key, delay > 0 ORDER BY priority, CASE WHEN lifo THEN -n ELSE n END) AS nth
      FROM unnest(_keys, _priorities, _delays, _lifos) WITH ORDINALITY k(key, priority, delay, lifo, n)
    ) lanes;
  END IF;
  IF cardinality(_names) = 1 THEN
    -- Most calls of a producer that waits for each job bring one: the statement for many takes longer to set up.
    -- include: put-job
    FROM (
      SELECT _chosen[1] AS id, _names[1] AS name, _data[1] AS data, _opts[1] AS opts, _priorities[1] AS priority,
        _delays[1] AS delay, _lifos[1] AS lifo, _timestamps[1] AS timestamp, _keys[1] AS key, _lanes[1] AS lane, 1 AS n
    ) o
    ON CONFLICT (queue, id) DO NOTHING;
    IF FOUND THEN _made := ARRAY[1]; END IF;
  END IF;
  WHILE cardinality(_made) < cardinality(_names) LOOP
    WITH put AS (
      -- include: put-job
      FROM unnest(_chosen, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _lanes) WITH ORDINALITY o(
        id, name, data, opts, priority, delay, lifo, timestamp, key, lane, n
      )
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
  _change := no_change(_queue);
  IF cardinality(_made) = cardinality(_names) THEN
    _made := NULL;
    _change.events := cardinality(_names);
    _change.body := event('added', _chosen, json_build_object('jobName', _names));
  ELSE
    -- One that claims were to look at may be a duplicate.
    IF _keys IS NOT NULL THEN
      INSERT INTO freed_keys (queue, lock_key)
      SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(_keys) key WHERE key IS NOT NULL) freed;
    END IF;
    SELECT count(*),
      event('added', array_agg(_chosen[n] ORDER BY n), json_build_object('jobName', array_agg(_names[n] ORDER BY n)))
    INTO _change.events, _change.body FROM unnest(_made) n HAVING count(*) > 0;
  END IF;
  IF _made IS NULL AND _priorities IS NULL AND _delays IS NULL THEN
    -- As most calls are.
    _change.events := 2 * _change.events;
    _change.body := _change.body || ',' || event('waiting', _chosen);
    _change.waiting := cardinality(_chosen);
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
      _change.events := coalesce(_change.events, 0) + _group.jobs;
      _change.body := concat_ws(
        ',', _change.body,
        event(_group.name, _group.ids, CASE _group.name WHEN 'delayed' THEN json_build_object('delay', _group.dues) END)
      );
      IF _group.name = 'delayed' THEN
        _change.delayed := _group.jobs;
      ELSIF _group.name = 'waiting' THEN
        _change.waiting := _group.plain;
        _change.prioritized := _group.jobs - _group.plain;
      END IF;
    END LOOP;
  END IF;
  -- include: note
  -- A run of counted ids, which is what most calls get, is told by its two ends.
  IF _ids IS NULL AND _made IS NULL AND _chosen[cardinality(_chosen)]::bigint - _chosen[1]::bigint = cardinality(_chosen) - 1 THEN
    _reply := json_build_object('first', _chosen[1]::bigint, 'count', cardinality(_chosen));
  ELSE
    _reply := json_build_object('ids', _chosen, 'made', _made);
  END IF;
  IF _caller IS NOT NULL THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;
