-- Returns whether a rest is over, and the lowest limit of all groups that keeps groups from the ring although the present one (`most`,
-- `max`) is higher: for places (3), for claims of a window (2).
SELECT EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND restsUntil <= :now),
  (SELECT min(level) FROM groups WHERE queue = :queue AND place = 3 AND level < :most),
  (SELECT min(level) FROM groups WHERE queue = :queue AND place = 2 AND level < :max)
