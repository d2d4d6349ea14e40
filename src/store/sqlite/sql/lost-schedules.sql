-- Returns running schedules whose slot has passed and whose next job is gone, finished or (unless the schedule is serial) active.
-- States: 3 active, 6 waiting-children.
SELECT id, nextJob FROM schedules WHERE queue = :queue AND at < :latest AND schedules.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = schedules.queue AND jobs.id = nextJob
    AND (jobs.state < 3 OR jobs.state = 6 OR (jobs.state = 3 AND serial = 1)))
LIMIT :count + 0
