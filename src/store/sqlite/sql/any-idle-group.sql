-- Returns a row if `delete-idle-groups` would delete a group.
SELECT 1 FROM groups WHERE queue = :queue AND place = 0 AND max(limitedUntil, windowEnds) <= :now LIMIT 1
