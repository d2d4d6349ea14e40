-- Deletes a job that completes and is not kept, unless it is a parent (MARK.parent = 4), whose links must be checked first.
DELETE FROM jobs WHERE
-- include: owned
AND marks & 4 = 0 RETURNING
-- include: left-columns
, attemptsMade
