-- Deletes the steps of a row from a number on.
DELETE FROM steps WHERE job = :job AND number >= :number
