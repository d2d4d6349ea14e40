-- Rewrites a row of events.
UPDATE events SET body = :body WHERE queue = :queue AND first = :first
