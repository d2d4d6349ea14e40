-- Creates the row of a queue.
INSERT INTO queues (name) VALUES (:name)
