-- Changes the delay of a row.
UPDATE jobs SET delay = :delay, dueAt = :dueAt, ord = :ord WHERE job = :job
