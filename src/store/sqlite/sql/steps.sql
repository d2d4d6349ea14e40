-- Steps of jobs.

-- name: clear-stalls
-- Sets the count of stalls of a row to 0.
UPDATE jobs SET stalledCounter = 0 WHERE job = :job

-- name: delete-steps
-- Deletes the steps of a row from a number on.
DELETE FROM steps WHERE job = :job AND number >= :number

-- name: find-step
-- Finds a step of a row by its name.
SELECT number, value FROM steps WHERE job = :job AND name = :name

-- name: insert-step
-- Records a step of a row.
INSERT INTO steps (job, number, name, value, total) VALUES (:job, :number, :name, :value, :total)

-- name: last-step
-- Returns the number of the last step of a row, and the bytes of all its steps.
SELECT number, total FROM steps WHERE job = :job ORDER BY number DESC LIMIT 1

-- name: read-steps
-- Reads the steps of a row in the order in which they were recorded.
SELECT name, value FROM steps WHERE job = :job ORDER BY number
