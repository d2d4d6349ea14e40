-- Records the jobs that complete.sql has completed.
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
