-- Puts new jobs into a queue. _reply: their ids, and which of them are new (null: all).
-- Inserts rows in the order of their ids, so that two calls that add the same ids never deadlock. If a user took a counted id before, the
-- counter steps over that id: the new job must not vanish as its duplicate.
-- Called by: add.sql, put-unique.sql, put-family.sql, put-letter.sql, release-entries.sql, schedule.sql.
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
    -- include: lanes
  END IF;
  -- include: put-in-groups
  IF _marks IS NOT NULL THEN
    -- include: note-letters
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
  -- include: tell-added
  -- include: note-entering
  -- include: added-reply
END
$body$;
