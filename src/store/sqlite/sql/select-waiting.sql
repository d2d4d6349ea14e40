-- Returns jobs in the claim order.
SELECT
-- include: left-columns
-- include: waiting-of-priority
-- include: older
ORDER BY priority, ord LIMIT :count + 0
