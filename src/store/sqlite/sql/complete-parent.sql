-- Completes a parent whose links allow it.
-- include: completed
RETURNING
-- include: left-columns
, attemptsMade - 1
