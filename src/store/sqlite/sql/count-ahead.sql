-- Counts the lock waiters before a place.
SELECT count(*)
-- include: in-line
AND place < :place
