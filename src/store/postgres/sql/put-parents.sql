-- Puts new jobs that wait for children into a queue. _made: which of them are new; null: all. The delay of a job begins when it is released.
-- Called by: put-family.sql.
-- States: 6 waiting-children.
-- MARK.key = 1
CREATE FUNCTION put_parents(
  _queue int, _clock float8, _ids text[], _names text[], _data text[], _opts text[], _priorities int[], _delays float8[],
  _timestamps float8[], _keys text[], _marks smallint[], _extras text[], OUT _change journal, OUT _chosen text[], OUT _made bigint[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _counter regclass := 'ids_' || _queue;
  _base bigint := nextval('places');
  _new text[];
  _known text[];
BEGIN
  _chosen := _ids;
  FOR _n IN 1 .. cardinality(_names) LOOP
    WHILE _chosen[_n] IS NULL OR _ids[_n] IS NULL AND EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _chosen[_n]) LOOP
      _chosen[_n] := nextval(_counter);
    END LOOP;
  END LOOP;
  IF (SELECT bool_or(mark & 1 > 0) FROM unnest(_marks) mark) THEN PERFORM be_grouped(_queue); END IF;
  WITH put AS (
    INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, id, name, opts, data, lock_key, marks, extras)
    SELECT _queue, 6, coalesce(priority, 0), _base + n, _base + n, floor(_clock), coalesce(delay, 0), timestamp, id, name, opts, data, key,
      marks, extras
    FROM unnest(_chosen, _names, _data, _opts, _priorities, _delays, _timestamps, _keys, _marks, _extras) WITH ORDINALITY
      o(id, name, data, opts, priority, delay, timestamp, key, marks, extras, n)
    ORDER BY id, n
    ON CONFLICT (queue, id) DO NOTHING RETURNING added - _base AS n
  )
  SELECT coalesce(array_agg(n ORDER BY n), '{}') INTO _made FROM put;
  _change := no_change(_queue);
  SELECT array_agg(_chosen[n] ORDER BY n) INTO _new FROM unnest(_made) n;
  SELECT array_agg(_chosen[n] ORDER BY n) INTO _known FROM (SELECT generate_subscripts(_names, 1) EXCEPT SELECT unnest(_made)) o(n);
  _change.events := cardinality(_names) + cardinality(_made);
  _change.parents := cardinality(_made);
  _change.body := concat_ws(
    ',',
    CASE WHEN _new IS NOT NULL THEN
      event('added', _new, json_build_object('jobName', ARRAY(SELECT _names[n] FROM unnest(_made) WITH ORDINALITY m(n, i) ORDER BY i)))
    END,
    CASE WHEN _new IS NOT NULL THEN event('waiting-children', _new) END,
    CASE WHEN _known IS NOT NULL THEN event('duplicated', _known) END
  );
  IF cardinality(_made) = cardinality(_names) THEN _made := NULL; END IF;
END
$body$;
