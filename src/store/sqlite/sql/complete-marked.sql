-- Completes a job of a group, a child or both (MARK.key = 1, MARK.child = 2) whose extras are those that its claim has seen, so they need
-- not be returned: 3.3 µs a job instead of 5.1 µs.
-- include: completed
AND extras = :extras AND marks BETWEEN 1 AND 3 AND (marks & 1 = 1 OR
-- include: key
IS NULL)
