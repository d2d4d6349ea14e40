-- Finds the first job of a group in one state behind a place.
SELECT job, priority, ord
-- include: of-group
AND (priority, ord) > (:priority, :ord) ORDER BY priority, ord LIMIT 1
