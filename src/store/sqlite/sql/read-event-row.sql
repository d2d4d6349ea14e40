-- Reads a row of events.
SELECT body FROM events WHERE queue = :queue AND first = :first
