-- Returns the bytes of a row.
SELECT
-- include: job-bytes
FROM jobs WHERE job = :job
