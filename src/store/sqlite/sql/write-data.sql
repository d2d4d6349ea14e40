-- Writes the data of a row.
UPDATE jobs SET data = :data WHERE job = :job
