-- Lists waiting jobs in the claim order: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: waiting-of-priority
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped
