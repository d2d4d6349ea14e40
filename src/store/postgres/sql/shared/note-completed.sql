-- Writes the jobs of _done to the journal, if the fast path completed only some.
IF _finished > 0 THEN
  INSERT INTO journal (queue, active, completed, finishes, events, body, minute, completions)
  SELECT _queue, -_finished, _finished, _finished, _finished,
    event('completed', array_agg(_ids[n] ORDER BY i), json_build_object('returnvalue', array_agg(_texts[n] ORDER BY i))),
    _minute, _finished
  FROM unnest(_done) WITH ORDINALITY o(n, i);
END IF;
