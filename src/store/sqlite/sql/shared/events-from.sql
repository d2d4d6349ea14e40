-- Rows of events from the one that contains an event on. That row begins at or before the event.
FROM events
WHERE queue = :queue AND first >= ifnull((SELECT max(first) FROM events WHERE queue = :queue AND first <= :event), 0)
ORDER BY first LIMIT :count + 0
