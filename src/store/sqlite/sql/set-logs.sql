-- Writes the numbers of the first and of the next log.
UPDATE jobs SET logFirst = :first, logNext = :next WHERE job = :job
