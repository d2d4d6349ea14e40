-- Returns a row if more schedules than a number are owing.
SELECT 1 FROM schedules WHERE queue = :queue AND state = 'owing' LIMIT 1 OFFSET :carried
