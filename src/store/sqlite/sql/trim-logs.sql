-- Deletes the logs of a row before a number.
DELETE FROM logs WHERE job = :job AND number < :first
