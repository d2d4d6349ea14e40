-- Records the groups of the new jobs that wait.
IF _entering IS NOT NULL THEN
  PERFORM note_groups(
    _queue, NULL, ARRAY(SELECT _entering[n] FROM generate_subscripts(_entering, 1) n WHERE _made IS NULL OR n = ANY (_made))
  );
END IF;
