-- Removes the own end of a lock.
UPDATE jobs SET endsAt = NULL WHERE job = :job
