-- Writes the progress of a row.
UPDATE jobs SET progress = :progress WHERE job = :job
