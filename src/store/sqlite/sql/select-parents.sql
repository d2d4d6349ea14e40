-- Returns jobs that wait for children, in the order in which they began to.
SELECT
-- include: left-columns
-- include: parents-of-queue
-- include: older
ORDER BY ord LIMIT :count + 0
