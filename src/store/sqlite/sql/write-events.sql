-- Writes a row of events.
INSERT INTO events (queue, first, last, body) VALUES (:queue, :first, :last, :body)
