-- Returns the last caller of the chunk that begins after a caller.
SELECT queue, id FROM callers WHERE (queue, id) > (:fromQueue, :fromId) ORDER BY queue, id LIMIT 1 OFFSET :skipped
