-- Moves a row within its key group.
UPDATE jobs SET state = :state WHERE job = :job
