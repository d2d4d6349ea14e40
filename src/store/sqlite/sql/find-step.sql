-- Finds a step of a row by its name.
SELECT number, value FROM steps WHERE job = :job AND name = :name
