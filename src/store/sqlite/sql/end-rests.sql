-- Lets groups whose rest is over back into the ring.
UPDATE groups SET place = 1 WHERE queue = :queue AND place = 2 AND restsUntil <= :now
