-- Takes a schedule its next job, unless the schedule is serial and the job has not ended. A running schedule is owing then; a paused one
-- had left its job to run. Changes nothing if another job is the next one.
UPDATE schedules SET version = version + 1, nextJob = NULL, state = CASE state WHEN 'running' THEN 'owing' ELSE state END
WHERE queue = :queue AND id = :id AND nextJob IS :job AND (serial = 0 OR :ended = 1)
RETURNING
-- include: schedule-columns
