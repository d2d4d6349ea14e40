-- Delays a running job for its owner.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, delay = :delay, dueAt = :dueAt,
-- include: unlocked
WHERE
-- include: owned
