-- Writes the row of a queue.
UPDATE queues SET version = :version, touchedAt = :touchedAt, paused = :paused, maxActive = :maxActive, keyed = :keyed,
  limitedUntil = :limitedUntil, windowEnds = :windowEnds, windowUsed = :windowUsed, windowMax = :windowMax,
  lastId = :lastId, front = :front, back = :back, fence = :fence, firstEvent = :firstEvent, lastEvent = :lastEvent,
  waiting = :waiting, prioritized = :prioritized, delayed = :delayed, active = :active, completed = :completed,
  failed = :failed, scheduled = :scheduled, parents = :parents
WHERE queue = :queue
