-- Finds a job by its id (FoundRow in record.ts).
SELECT
-- include: held-columns
, state, dueAt, session, fence, logFirst, attemptsStarted
FROM jobs WHERE queue = :queue AND id = :id
