-- Returns the delay of a row.
SELECT delay FROM jobs WHERE job = :job
