-- Makes the schedules of next jobs that have ended owing. Only serial schedules have jobs that run and are still their next jobs.
-- Called by: leave.sql.
CREATE FUNCTION end_runs(_queue int, _jobs text[], _extras text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM owe(_queue, schedule, job)
  FROM (
    SELECT job, extras::json ->> 's' AS schedule FROM unnest(_jobs, _extras) o(job, extras)
    WHERE extras::json ->> 's' IS NOT NULL ORDER BY extras::json ->> 's' COLLATE "C" OFFSET 0
  ) ended;
END
$body$;
