-- Completes a job for its owner.
-- States: 4 completed.
UPDATE jobs SET state = 4, ord = :ord, finishedOn = :now, returnvalue = :value, attemptsMade = attemptsMade + 1,
-- include: lock-ended
WHERE
-- include: owned
