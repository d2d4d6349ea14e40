-- Schedules, and their next jobs.

-- name: any-owing
-- Returns a row if more schedules than a number are owing.
SELECT 1 FROM schedules WHERE queue = :queue AND state = 'owing' LIMIT 1 OFFSET :carried

-- name: count-schedules
-- Counts the schedules of a queue.
SELECT count(*) FROM schedules WHERE queue = :queue

-- name: delete-schedule
-- Deletes a schedule.
DELETE FROM schedules WHERE queue = :queue AND id = :id

-- name: find-schedule
-- Finds a schedule by its id.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue AND id = :id

-- name: give-up-next
-- Clears the mark of a next job (MARK.next = 16), so that it is an ordinary job.
UPDATE jobs SET marks = marks & ~16 WHERE queue = :queue AND id = :id

-- name: list-owing-schedules
-- Lists owing schedules. The inner query reads the index of owing schedules alone; a single query would read all schedules.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue AND id IN
  (SELECT id FROM schedules WHERE queue = :queue AND state = 'owing' LIMIT :count + 0)

-- name: list-schedules
-- Lists schedules by slot and then by id. A negative count has no limit.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue ORDER BY at, id LIMIT :count + 0 OFFSET :skipped

-- name: lost-schedules
-- Returns running schedules whose slot has passed and whose next job is gone, finished or (unless the schedule is serial) active.
-- States: 3 active, 6 waiting-children.
SELECT id, nextJob FROM schedules WHERE queue = :queue AND at < :latest AND schedules.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = schedules.queue AND jobs.id = nextJob
    AND (jobs.state < 3 OR jobs.state = 6 OR (jobs.state = 3 AND serial = 1)))
LIMIT :count + 0

-- name: owe-schedule
-- Takes a schedule its next job, unless the schedule is serial and the job has not ended. A running schedule is owing then; a paused one
-- had left its job to run. Changes nothing if another job is the next one.
UPDATE schedules SET version = version + 1, nextJob = NULL, state = CASE state WHEN 'running' THEN 'owing' ELSE state END
WHERE queue = :queue AND id = :id AND nextJob IS :job AND (serial = 0 OR :ended = 1)
RETURNING
-- include: schedule-columns

-- name: set-schedule
-- Writes a schedule.
INSERT OR REPLACE INTO schedules (queue,
-- include: schedule-columns
) VALUES (:queue, :id, :version, :spec, :serial, :state, :at, :count, :nextJob)

-- part: schedule-columns
-- All columns of a schedule (ScheduleRow in schedules.ts).
id, version, spec, serial, state, at, count, nextJob
