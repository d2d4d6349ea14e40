-- Lets the first groups that an earlier limit keeps from the ring back into it. Claims check the present limits of a group in the ring.
UPDATE groups SET place = 1, level = NULL WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = :place AND level = :level ORDER BY number, key LIMIT :count + 0)
