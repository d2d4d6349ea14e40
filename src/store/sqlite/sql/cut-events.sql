-- Cuts the first events off a row.
UPDATE events SET first = :first, body = :body WHERE queue = :queue AND first = :before
