-- Deletes the rows of events up to an event.
DELETE FROM events WHERE queue = :queue AND first <= :last AND last <= :last
