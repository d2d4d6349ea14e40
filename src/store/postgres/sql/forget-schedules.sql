-- Deletes the schedules of a queue, with next jobs that have not started. Each pass deletes those whose next jobs it has locked before.
-- Called by: forget.sql.
-- States: 3 active.
CREATE FUNCTION forget_schedules(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _ids text[];
  _locked text[];
  _job record;
  _change journal := no_change(_queue);
BEGIN
  WHILE EXISTS (SELECT FROM schedules WHERE queue = _queue) LOOP
    _ids := ARRAY(SELECT next_job FROM schedules WHERE queue = _queue AND next_job IS NOT NULL);
    -- include: lock-jobs
    FOR _job IN
      WITH gone AS (
        DELETE FROM schedules WHERE queue = _queue AND (next_job IS NULL OR next_job = ANY (_ids)) RETURNING next_job AS id
      )
      SELECT gone.id, j.started FROM gone,
        LATERAL (SELECT state + 0 = 3 OR attempts_started > 0 AS started FROM jobs WHERE queue = _queue AND id = gone.id OFFSET 0) j
    LOOP
      _change := dismiss(_queue, _job.id, NOT _job.started, _change);
    END LOOP;
  END LOOP;
  IF _change.events > 0 THEN
    INSERT INTO journal (queue, waiting, prioritized, delayed)
    VALUES (_queue, _change.waiting, _change.prioritized, _change.delayed);
  END IF;
END
$body$;
