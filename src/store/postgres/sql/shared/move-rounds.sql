-- Applies the outcomes that are not done yet, until each is done, refused or found lost. Sets _results.
WHILE _done IS NULL OR cardinality(_done) < _many LOOP
  _base := coalesce(_base, nextval('places'));
  FOR _group IN
    -- include: move-outcomes
  LOOP
    -- include: book-group
  END LOOP;
  EXIT WHEN cardinality(_done) = _many;
  _results := outcome_results(_queue, _kinds, _ids, _owners, _fences, _done, _texts, _refused, _results);
  -- include: fail-cancelled
  EXIT WHEN position('o' IN _results) = 0;
  -- Later ones are judged again: the outcome before them may end the run.
  _refused := ARRAY(SELECT n FROM generate_series(1, position('o' IN _results) - 1) n WHERE substr(_results, n, 1) IN ('p', 'u', 'r'));
END LOOP;
-- An earlier round may have found a job that was owned still, and that the last round has moved.
IF cardinality(_done) = _many THEN _results := repeat('d', _many); END IF;
