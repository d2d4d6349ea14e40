-- Fails a job for good.
-- States: 5 failed.
UPDATE jobs SET state = 5, ord = :ord, finishedOn = :now,
-- include: counted-failure
,
-- include: lock-ended
WHERE
-- include: owned
RETURNING
-- include: left-columns
, attemptsMade - 1
