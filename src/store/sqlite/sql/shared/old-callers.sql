-- Old callers of one chunk. A worker may repeat its last call for as long as its session is open. The scan is in table order: an
-- index on the age would find old callers at once, but every call would have to write it.
FROM callers WHERE (queue, id) > (:fromQueue, :fromId) AND (queue, id) <= (:toQueue, :toId) AND usedAt < :usedBefore
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.queue = callers.queue AND sessions.id = callers.id)
