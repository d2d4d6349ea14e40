-- Reads the whole record of a row.
SELECT
-- include: job-columns
FROM jobs WHERE job = :job
