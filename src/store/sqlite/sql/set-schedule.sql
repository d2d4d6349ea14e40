-- Writes a schedule.
INSERT OR REPLACE INTO schedules (queue,
-- include: schedule-columns
) VALUES (:queue, :id, :version, :spec, :serial, :state, :at, :count, :nextJob)
