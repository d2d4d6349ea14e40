-- Fails the cancelled jobs that their outcomes would let wait again: hand_back does.
IF position('c' IN _results) > 0 THEN
  SELECT array_agg(id ORDER BY n) AS ids, array_agg(n) AS ns INTO _group FROM (
    SELECT DISTINCT ON (id) id, n FROM unnest(_ids) WITH ORDINALITY o(id, n) WHERE substr(_results, n::int, 1) = 'c' ORDER BY id, n
  ) o;
  PERFORM hand_back(_queue, _clock, _group.ids, NULL, NULL, true);
  _done := _done || _group.ns;
  CONTINUE;
END IF;
