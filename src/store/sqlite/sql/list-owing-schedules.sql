-- Lists owing schedules. The inner query reads the index of owing schedules alone; a single query would read all schedules.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue AND id IN
  (SELECT id FROM schedules WHERE queue = :queue AND state = 'owing' LIMIT :count + 0)
