-- Returns the first jobs of a group in one state behind a place.
SELECT
-- include: member-columns
-- include: of-group
AND (priority, ord) > (:priority, :ord) ORDER BY priority, ord LIMIT :count + 0
