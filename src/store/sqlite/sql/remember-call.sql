-- Stores the last call of a caller and its reply.
INSERT OR REPLACE INTO callers (queue, id, seq, usedAt, reply) VALUES (:queue, :caller, :seq, :now, :reply)
