-- Reads logs by their numbers.
SELECT row FROM logs WHERE job = :job AND number BETWEEN :first AND :last ORDER BY number
