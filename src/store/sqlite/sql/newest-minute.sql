-- Finds the newest minute in which a job finished.
SELECT minute, count, total FROM metrics WHERE queue = :queue AND kind = :kind ORDER BY minute DESC LIMIT 1
