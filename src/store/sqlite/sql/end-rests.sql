-- Lets groups whose rest is over back into the ring, up to a limit.
UPDATE groups SET place = 1, level = NULL WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = 2 AND restsUntil <= :now ORDER BY restsUntil LIMIT :count + 0)
