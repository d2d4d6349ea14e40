-- Lists delayed jobs: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: delayed-jobs
ORDER BY dueAt, ord LIMIT :count + 0 OFFSET :skipped
