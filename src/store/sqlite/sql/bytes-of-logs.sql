-- Returns the bytes of logs.
SELECT octet_length(row) FROM logs WHERE job = :job AND number BETWEEN :first AND :last ORDER BY number
