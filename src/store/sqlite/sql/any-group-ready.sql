-- Returns a row if a group is in the ring, or should be. `most`, `max`: the limits of all groups.
SELECT 1 WHERE EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 1)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND restsUntil <= :now)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 3 AND level < :most)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND level < :max)
