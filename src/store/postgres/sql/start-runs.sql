-- Makes the schedules of next jobs that were just claimed owing, except serial ones. Returns them, with the clock, in the place of a part of
-- a claim's reply that has no jobs: [null, [[job, schedule], …]]. Older versions read no jobs from it. Null: there are none.
-- Called by: claim-plain.sql, grant-by-id.sql, grant-in-turn.sql, grant-locks.sql, settle-children.sql, settle-groups.sql, settle-plain.sql.
CREATE FUNCTION start_runs(_queue int, _jobs text[]) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _row schedules;
  _debts json[];
BEGIN
  FOR _one IN
    SELECT j.job, j.schedule FROM unnest(_jobs) o(id),
      LATERAL (SELECT id AS job, extras::json ->> 's' AS schedule FROM jobs WHERE queue = _queue AND id = o.id AND true OFFSET 0) j
    ORDER BY j.schedule COLLATE "C"
  LOOP
    CONTINUE WHEN EXISTS (SELECT FROM schedules WHERE queue = _queue AND id = _one.schedule AND serial);
    _row := owe(_queue, _one.schedule, _one.job);
    IF _row.id IS NOT NULL THEN
      _debts := _debts || json_build_array(_one.job, json_strip_nulls(schedule_record(_row)), floor(clock_ms())::bigint);
    END IF;
  END LOOP;
  RETURN '[null,' || to_json(_debts) || ']';
END
$body$;
