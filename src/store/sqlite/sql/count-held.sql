-- Counts the jobs that a session holds.
SELECT count(*)
-- include: held-by-session
