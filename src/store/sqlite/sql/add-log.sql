-- Adds a log to a row.
INSERT INTO logs (job, number, row) VALUES (:job, :number, :row)
