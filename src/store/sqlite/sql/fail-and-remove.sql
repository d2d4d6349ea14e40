-- Deletes a job that fails and is not kept, unless more follows from it: a parent (MARK.parent = 4) has links, and a letter
-- (MARK.letter = 128) is a copy of the row.
DELETE FROM jobs WHERE
-- include: owned
AND marks & 132 = 0 RETURNING
-- include: left-columns
, attemptsMade
