-- Returns why the children of a job refuse an outcome, as a letter: pending, unsuccessful, ready; null if they do not. _said: of the outcome
-- `children`, the child that the job waits for, as JSON; null: all. The caller holds the lock of the job.
-- Called by: carry-out.sql, outcome-results.sql.
CREATE FUNCTION outcome_refusal(_queue int, _job text, _kind text, _said text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _family families;
  _waits boolean;
BEGIN
  IF _kind NOT IN ('completed', 'children') THEN RETURN NULL; END IF;
  SELECT * INTO _family FROM families WHERE queue = _queue AND parent = _job;
  IF _family.failed > 0 THEN RETURN 'u'; END IF;
  _waits := coalesce(_family.pending > 0, false);
  IF _kind = 'completed' THEN RETURN CASE WHEN _waits THEN 'p' END; END IF;
  IF _said IS NOT NULL THEN
    _waits := EXISTS (
      SELECT FROM links
      WHERE queue = _queue AND parent = _job AND child_queue = (SELECT queue FROM queues WHERE name = _said::json ->> 'queue')
        AND child = _said::json ->> 'id' AND state = 'pending'
    );
  END IF;
  RETURN CASE WHEN NOT _waits THEN 'r' END;
END
$body$;
