-- Sets the count of stalls of a row to 0.
UPDATE jobs SET stalledCounter = 0 WHERE job = :job
