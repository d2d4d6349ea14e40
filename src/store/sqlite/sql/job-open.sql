-- Returns a row if a job exists and has not finished.
-- States: 4 completed.
SELECT 1 FROM jobs WHERE queue = :queue AND id = :id AND state < 4
