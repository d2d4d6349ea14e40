-- Does what remains to be done when jobs leave a state, by whatever way: their keys come free, the logs of removed jobs go, and marked jobs
-- release their entries and are missed by their schedules. The caller has moved or deleted the rows. Plain jobs that stay need none of it.
-- _marked, _extras: marked jobs that have ended or, _removed, were removed by a caller. _groups: the groups of jobs that left active, _entered:
-- of those that wait now.
-- Called by: carry-out.sql, drop-jobs.sql, fail-open.sql, hand-back.sql.
CREATE FUNCTION leave(
  _queue int, _clock float8, _keys text[], _logged text[], _marked text[], _extras text[], _removed boolean,
  INOUT _change journal, _groups text[] DEFAULT NULL, _entered text[] DEFAULT NULL
) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  IF _groups IS NOT NULL THEN PERFORM note_groups(_queue, _groups, _entered); END IF;
  IF _keys IS NOT NULL THEN
    -- include: free-keys
  END IF;
  IF _logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_logged); END IF;
  IF _marked IS NOT NULL THEN
    _change := release_entries(_queue, _clock, _marked, _extras, _removed, _change);
    IF NOT _removed THEN PERFORM end_runs(_queue, _marked, _extras); END IF;
  END IF;
END
$body$;
