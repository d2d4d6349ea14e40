-- Writes a group.
INSERT INTO groups (queue,
-- include: group-columns
, restsUntil, level)
VALUES (:queue, :key, :number, :paused, :maxActive, :rateMax, :rateMs, :limitedUntil, :windowEnds, :windowUsed, :place, :restsUntil, :level)
ON CONFLICT DO UPDATE SET number = excluded.number, paused = excluded.paused, maxActive = excluded.maxActive,
  rateMax = excluded.rateMax, rateMs = excluded.rateMs, limitedUntil = excluded.limitedUntil, windowEnds = excluded.windowEnds,
  windowUsed = excluded.windowUsed, place = excluded.place, restsUntil = excluded.restsUntil, level = excluded.level
