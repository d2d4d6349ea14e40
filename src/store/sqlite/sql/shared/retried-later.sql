-- Delays a failed job for its owner.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, delay = :delay, dueAt = :dueAt,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: owned
