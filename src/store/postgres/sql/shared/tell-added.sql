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
