-- Reads the steps of a row in the order in which they were recorded.
SELECT name, value FROM steps WHERE job = :job ORDER BY number
