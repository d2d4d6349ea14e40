-- Returns when the next delayed job is due.
SELECT min(dueAt)
-- include: delayed-jobs
