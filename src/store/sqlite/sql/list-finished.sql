-- Lists finished jobs: rows and their bytes.
SELECT job,
-- include: job-bytes
-- include: finished-jobs
ORDER BY ord LIMIT :count + 0 OFFSET :skipped
