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
