-- Records the groups of jobs that left active (_freed) or began to wait (_entered), for the next claim (count-groups.sql).
-- Called by: leave.sql, promote.sql, put-jobs.sql, send-to-waiting.sql, settle-groups.sql.
CREATE FUNCTION note_groups(_queue int, _freed text[], _entered text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO group_notes (queue, key, freed, entered)
  SELECT _queue, key, count(*) FILTER (WHERE freed), bool_or(NOT freed)
  FROM (SELECT key, true AS freed FROM unnest(_freed) key UNION ALL SELECT key, false FROM unnest(_entered) key) noted
  WHERE key IS NOT NULL GROUP BY key;
END
$body$;
