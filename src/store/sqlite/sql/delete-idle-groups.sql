-- Deletes groups without jobs and settings whose blocks and windows have ended, up to a limit.
DELETE FROM groups WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = 0 AND max(limitedUntil, windowEnds) <= :now LIMIT :count + 0)
