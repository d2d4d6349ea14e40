-- Returns a row if a group is in the ring, or should be.
SELECT 1 WHERE EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 1)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND restsUntil <= :now)
