-- Makes finished jobs that are retried the owners of their entries again, unless an entry counts.
-- Called by: send-to-waiting.sql.
CREATE FUNCTION own_again(_queue int, _jobs text[], _extras text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN SELECT job, extras::json ->> 'd' AS id FROM unnest(_jobs, _extras) o(job, extras) ORDER BY extras::json ->> 'd' COLLATE "C" LOOP
    CONTINUE WHEN _one.id IS NULL;
    PERFORM lock_entry(_queue, _one.id);
    IF entry_owner(_queue, floor(clock_ms())::bigint, _one.id) IS NULL THEN
      UPDATE dedup SET job = _one.job, until = NULL, draft = NULL WHERE queue = _queue AND id = _one.id;
    END IF;
  END LOOP;
END
$body$;
