-- Delays a failed job, unless it has one of the marks `passed`.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, delay = :delay, dueAt = :dueAt,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: owned
AND marks & :passed = 0 RETURNING
-- include: left-columns
