-- Walks through the keys of groups that have jobs, from one key on: whether the group may be lost (lost-groups.ts), and whether a job of
-- it waits. A full group (place 3) may have a place again.
-- States: 0 behind.
WITH RECURSIVE found (lane) AS (
  SELECT min(
-- include: key
  ) FROM jobs WHERE queue = :queue AND
-- include: key
  > x'ff' || :after
  UNION ALL
  SELECT (SELECT min(
-- include: key
  ) FROM jobs WHERE queue = :queue AND
-- include: key
  > lane) FROM found WHERE lane IS NOT NULL LIMIT :count + 0
), keyed (key, place, waits) AS (
  SELECT CAST(substr(CAST(lane AS BLOB), 2) AS TEXT),
    (SELECT place FROM groups WHERE groups.queue = :queue AND groups.key = CAST(substr(CAST(lane AS BLOB), 2) AS TEXT)),
    EXISTS (SELECT 1 FROM jobs WHERE queue = :queue AND
-- include: key
    = lane AND state = 0)
  FROM found WHERE lane IS NOT NULL
)
SELECT key, coalesce(place, 0) = 3 OR coalesce(place, 0) NOT IN (1, 2) AND waits, waits FROM keyed
