-- Deletes a job that finishes and is not kept.
DELETE FROM jobs WHERE
-- include: owned
RETURNING
-- include: left-columns
, attemptsMade
