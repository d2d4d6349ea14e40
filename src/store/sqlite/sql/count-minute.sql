-- Counts jobs that finished in a minute.
INSERT INTO metrics (queue, kind, minute, count, total) VALUES (:queue, :kind, :minute, :jobs, :total)
ON CONFLICT DO UPDATE SET count = count + excluded.count, total = max(total, excluded.total)
