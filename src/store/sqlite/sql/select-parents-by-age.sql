-- Returns jobs that wait for children, the oldest first.
SELECT
-- include: left-columns
-- include: parents-of-queue
-- include: older
ORDER BY job LIMIT :count + 0
