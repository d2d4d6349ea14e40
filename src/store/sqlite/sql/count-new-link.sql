-- Counts a pending link that is new.
INSERT INTO families (queue, id, pending, processed, failed, ignored) VALUES (:queue, :parent, 1, 0, 0, 0)
ON CONFLICT DO UPDATE SET pending = pending + 1
