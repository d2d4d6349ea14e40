-- Reads rows of events from the one that contains an event on.
SELECT first, body
-- include: events-from
