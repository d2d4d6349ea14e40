-- Deletes a schedule.
DELETE FROM schedules WHERE queue = :queue AND id = :id
