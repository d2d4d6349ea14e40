-- Reads the row of a queue: its number, COLUMNS of queue-state.ts, and its rules.
SELECT queue, version, touchedAt, paused, maxActive, keyed, limitedUntil, windowEnds, windowUsed, windowMax, lastId, front, back,
  fence, firstEvent, lastEvent, waiting, prioritized, delayed, active, completed, failed, scheduled, parents, rules
FROM queues WHERE name = :name
