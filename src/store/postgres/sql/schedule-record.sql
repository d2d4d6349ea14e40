-- Returns a schedule as ScheduleRecord in schedule-record.ts. Absent fields are null.
-- Called by: schedule.sql, schedules-of.sql, start-runs.sql.
CREATE FUNCTION schedule_record(_row schedules) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_object(
  'id', _row.id, 'version', _row.version, 'spec', _row.spec, 'serial', _row.serial, 'state', _row.state, 'at', _row.at, 'count',
  _row.count, 'nextJobId', _row.next_job
)
$body$;
