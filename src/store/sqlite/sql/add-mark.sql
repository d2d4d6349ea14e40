-- Sets a mark of a row.
UPDATE jobs SET marks = marks | :mark WHERE job = :job
