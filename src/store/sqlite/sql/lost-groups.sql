-- Walks through the keys of groups that have jobs, from one key on: whether the group may be lost (lost-groups.ts), and whether a job of
-- it waits. A full group (place 3) may have a place again.
-- States: 0 behind.
WITH RECURSIVE found (lockKey) AS (
  SELECT min(lockKey) FROM jobs WHERE queue = :queue AND lockKey > x'ff' || :after
  UNION ALL
  SELECT (SELECT min(lockKey) FROM jobs WHERE queue = :queue AND lockKey > found.lockKey) FROM found
  WHERE found.lockKey IS NOT NULL LIMIT :count + 0
), keyed (key, place, waits) AS (
  SELECT CAST(substr(CAST(lockKey AS BLOB), 2) AS TEXT),
    (SELECT place FROM groups WHERE groups.queue = :queue AND groups.key = CAST(substr(CAST(lockKey AS BLOB), 2) AS TEXT)),
    EXISTS (SELECT 1 FROM jobs WHERE queue = :queue AND jobs.lockKey = found.lockKey AND state = 0)
  FROM found WHERE lockKey IS NOT NULL
)
SELECT key, coalesce(place, 0) = 3 OR coalesce(place, 0) NOT IN (1, 2) AND waits, waits FROM keyed
