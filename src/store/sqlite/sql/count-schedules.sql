-- Counts the schedules of a queue.
SELECT count(*) FROM schedules WHERE queue = :queue
