-- Returns the number of the last step of a row, and the bytes of all its steps.
SELECT number, total FROM steps WHERE job = :job ORDER BY number DESC LIMIT 1
