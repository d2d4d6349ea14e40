-- Finds the oldest minute that is kept.
SELECT minute FROM metrics WHERE queue = :queue AND kind = :kind ORDER BY minute LIMIT 1
