-- Writes the turns of a queue.
INSERT INTO turns (queue, last, plain) VALUES (:queue, :last, :plain)
ON CONFLICT DO UPDATE SET last = excluded.last, plain = excluded.plain
