-- Changes the priority of a job, and its place if one is given.
UPDATE jobs SET priority = :priority, ord = coalesce(:ord, ord) WHERE job = :job
