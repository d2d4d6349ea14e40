-- Puts a lock waiter at the end of the line.
INSERT INTO places (queue, name, token, session, keptUntil) VALUES (:queue, :name, :token, :session, :keptUntil)
