-- Delays any failed job.
-- include: retried-later
RETURNING
-- include: left-columns
