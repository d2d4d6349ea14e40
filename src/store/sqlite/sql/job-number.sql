-- Returns the row number of a job.
SELECT job FROM jobs WHERE queue = :queue AND id = :id
