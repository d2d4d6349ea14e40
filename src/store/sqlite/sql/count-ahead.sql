-- Counts the lock waiters between two places.
SELECT count(*)
-- include: in-line
AND place >= :from AND place < :place
