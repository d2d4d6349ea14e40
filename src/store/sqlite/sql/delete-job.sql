-- Deletes a row.
DELETE FROM jobs WHERE job = :job
