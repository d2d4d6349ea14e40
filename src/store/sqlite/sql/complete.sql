-- Completes any job. Returning the row makes it a sixth slower.
-- include: completed
RETURNING
-- include: left-columns
, attemptsMade - 1
