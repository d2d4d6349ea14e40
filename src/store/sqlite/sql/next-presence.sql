-- Returns the next presence file of sessions that are not suspected. Steps from one process to the next, because DISTINCT would scan
-- all their sessions.
SELECT min(presence)
-- include: unsuspected
AND presence > :presence
