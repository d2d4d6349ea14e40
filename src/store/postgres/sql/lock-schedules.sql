-- Locks the next jobs of schedules in the order of their ids, then the schedules in the order of theirs: claims and ends lock the job first
-- too. If a claim takes a next job meanwhile, the schedule has another version afterwards, and the change is stale.
-- _made: which of them are made if they do not exist.
-- Called by: schedule.sql.
CREATE FUNCTION lock_schedules(_queue int, _schedules text[], _made boolean[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _ids text[] := ARRAY(
    SELECT s.next_job FROM unnest(_schedules) o(id),
      LATERAL (SELECT next_job FROM schedules WHERE queue = _queue AND id = o.id OFFSET 0) s
    WHERE s.next_job IS NOT NULL
  );
  _locked text[];
BEGIN
  -- include: lock-jobs
  PERFORM lock_schedule(_queue, id, made)
  FROM (
    SELECT id, bool_or(made) AS made FROM unnest(_schedules, _made) o(id, made) GROUP BY id ORDER BY id COLLATE "C" OFFSET 0
  ) o;
END
$body$;
