-- All columns of a schedule (ScheduleRow in schedules.ts).
id, version, spec, serial, state, at, count, nextJob
