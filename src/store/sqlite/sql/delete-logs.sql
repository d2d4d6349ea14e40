-- Deletes the logs of a row.
DELETE FROM logs WHERE job = :job
