-- The owner that lost a job.
-- jobs.lost_by: the owner that lost the job last, and how that was found, as JSON text.
ALTER TABLE jobs ADD COLUMN lost_by text;
