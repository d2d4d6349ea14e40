-- Returns jobs behind another job of their key.
SELECT
-- include: left-columns
-- include: behind-of-priority
-- include: older
ORDER BY priority, ord LIMIT :count + 0
