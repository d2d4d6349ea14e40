-- Completes any job but a parent (MARK.parent = 4), whose links must be checked first. Returning the row makes it a sixth slower.
-- include: completed
AND marks & 4 = 0 RETURNING
-- include: left-columns
, attemptsMade - 1
