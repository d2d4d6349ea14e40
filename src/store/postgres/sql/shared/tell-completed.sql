-- Sets _body: the events of completed jobs. A large result stays with its job, if the job stays.
-- EVENT_VALUE_BYTES = 4096
IF pg_column_size(_said) > 4096 THEN
  SELECT array_agg(CASE WHEN removed IS NOT TRUE AND octet_length(said) > 4096 THEN NULL ELSE said END ORDER BY n),
    CASE WHEN bool_or(removed IS NOT TRUE AND octet_length(said) > 4096) THEN array_agg(
      CASE WHEN removed IS NOT TRUE AND octet_length(said) > 4096 THEN 1 END ORDER BY n
    ) END
  INTO _said, _large FROM unnest(_said, _removed) WITH ORDINALITY o(said, removed, n);
END IF;
_body := event(
  'completed', _ids,
  CASE WHEN _large IS NULL THEN json_build_object('returnvalue', _said)
    ELSE json_build_object('returnvalue', _said, 'large', _large) END
);
