-- Puts new jobs, of which some have a deduplication, into a queue, one after the other. _reply: as that of put_jobs, and which of them were
-- deduplicated; the ids of these are those of the owners.
-- Called by: add.sql.
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
    -- include: deduplicate-one
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
