-- Ends the lock of a job that does not finish.
session = NULL, fence = NULL,
-- include: lock-ended
