-- Lists all rows of events with their bytes.
SELECT first, last, octet_length(body) FROM events WHERE queue = :queue ORDER BY first
