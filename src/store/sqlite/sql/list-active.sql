-- Lists active jobs in the order of their claims: rows and their bytes.
-- States: 3 active.
SELECT job,
-- include: job-bytes
FROM jobs WHERE queue = :queue AND state = 3
ORDER BY fence LIMIT :count + 0 OFFSET :skipped
