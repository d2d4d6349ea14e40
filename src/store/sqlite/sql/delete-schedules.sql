-- Deletes all schedules of a queue.
DELETE FROM schedules WHERE queue = :queue
