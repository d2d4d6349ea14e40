-- Metrics: finished jobs by the minute.

-- name: count-minute
-- Counts jobs that finished in a minute.
INSERT INTO metrics (queue, kind, minute, count, total) VALUES (:queue, :kind, :minute, :jobs, :total)
ON CONFLICT DO UPDATE SET count = count + excluded.count, total = max(total, excluded.total)

-- name: delete-minutes
-- Deletes the minutes before one.
DELETE FROM metrics WHERE queue = :queue AND kind = :kind AND minute < :minute

-- name: list-minutes
-- Lists minutes in which a job finished.
SELECT minute, count FROM metrics WHERE queue = :queue AND kind = :kind AND minute BETWEEN :first AND :last

-- name: newest-minute
-- Finds the newest minute in which a job finished.
SELECT minute, count, total FROM metrics WHERE queue = :queue AND kind = :kind ORDER BY minute DESC LIMIT 1

-- name: oldest-minute
-- Finds the oldest minute that is kept.
SELECT minute FROM metrics WHERE queue = :queue AND kind = :kind ORDER BY minute LIMIT 1
