-- Returns an empty row of the journal, in which a call gathers its changes.
-- Called by: add.sql, send-to-waiting.sql, change-jobs.sql, remove-jobs.sql, claim-plain.sql, claim.sql, pause.sql, clear-jobs.sql,
--   tell-cleaned.sql, hand-back.sql, settle-plain.sql, settle.sql, write-jobs.sql.
CREATE FUNCTION no_change(_queue int) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ROW (_queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL)::journal;
END
$body$;
