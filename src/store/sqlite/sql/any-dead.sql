-- Returns a row if a sweep would find anything.
SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE queue = :queue AND reaped < 2 AND expiresAt <= :now)
  OR EXISTS (SELECT 1 FROM jobs WHERE queue = :queue AND endsAt IS NOT NULL AND endsAt <= :now)
  OR EXISTS (SELECT 1 FROM dedup WHERE queue = :queue AND until IS NOT NULL AND until <= :now)
