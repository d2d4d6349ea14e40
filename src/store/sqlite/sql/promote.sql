-- Moves a delayed job to waiting.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord, delay = 0, dueAt = NULL WHERE job = :job
