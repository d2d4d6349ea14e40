-- Lists jobs behind another job of their key: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: behind-of-priority
ORDER BY priority, ord LIMIT :count + 0 OFFSET :skipped
