-- Returns the first jobs in the claim order (WaitingRow in record.ts).
-- States: 1 waiting.
SELECT
-- include: waiting-columns
FROM jobs WHERE queue = :queue AND state = 1 ORDER BY priority, ord LIMIT :count + 0
