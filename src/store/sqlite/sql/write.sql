-- Writing data, progress and logs.

-- name: add-log
-- Adds a log to a row.
INSERT INTO logs (job, number, row) VALUES (:job, :number, :row)

-- name: set-logs
-- Writes the numbers of the first and of the next log.
UPDATE jobs SET logFirst = :first, logNext = :next WHERE job = :job

-- name: trim-logs
-- Deletes the logs of a row before a number.
DELETE FROM logs WHERE job = :job AND number < :first

-- name: write-data
-- Writes the data of a row.
UPDATE jobs SET data = :data WHERE job = :job

-- name: write-progress
-- Writes the progress of a row.
UPDATE jobs SET progress = :progress WHERE job = :job

-- name: read-logs
-- Reads logs by their numbers.
SELECT row FROM logs WHERE job = :job AND number BETWEEN :first AND :last ORDER BY number

-- name: bytes-of-logs
-- Returns the bytes of logs.
SELECT octet_length(row) FROM logs WHERE job = :job AND number BETWEEN :first AND :last ORDER BY number
