-- Returns a row if a job is in the claim order.
-- States: 1 waiting.
SELECT 1 FROM jobs WHERE queue = :queue AND state = 1 LIMIT 1
