-- Delays a parent whose children have ended.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, dueAt = :dueAt WHERE job = :job
