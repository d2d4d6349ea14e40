-- Adds the progress events of _told to _change. A large value stays with its job.
-- EVENT_VALUE_BYTES = 4096
IF cardinality(_told) > 0 THEN
  IF pg_column_size(_progress) > 4096 THEN
    SELECT array_agg(CASE WHEN octet_length(said) > 4096 THEN NULL ELSE said END ORDER BY n),
      CASE WHEN bool_or(octet_length(said) > 4096) THEN array_agg(CASE WHEN octet_length(said) > 4096 THEN 1 END ORDER BY n) END
    INTO _progress, _large FROM unnest(_progress) WITH ORDINALITY o(said, n);
  END IF;
  _change.events := _change.events + cardinality(_told);
  _change.body := concat_ws(
    ',', _change.body,
    event(
      'progress', _told,
      CASE WHEN _large IS NULL THEN json_build_object('data', _progress)
        ELSE json_build_object('data', _progress, 'large', _large) END
    )
  );
  _told := '{}';
  _progress := '{}';
  _large := NULL;
END IF;
