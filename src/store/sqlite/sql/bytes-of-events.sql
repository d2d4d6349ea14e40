-- Returns the bytes of rows of events from the one that contains an event on.
SELECT octet_length(body)
-- include: events-from
