-- Delays any running job.
-- include: delayed
RETURNING
-- include: left-columns
