-- Returns a row if a job exists and has not finished.
-- States: 4 completed, 5 failed.
SELECT 1 FROM jobs WHERE queue = :queue AND id = :id AND state NOT IN (4, 5)
