-- Finds a schedule by its id.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue AND id = :id
