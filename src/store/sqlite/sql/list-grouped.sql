-- Lists jobs of a group in one state: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: of-group
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped
