-- Returns the first groups in the ring behind a place, in the order of their turns, each with what a claim needs of it: the number of its
-- active jobs if they are limited, whether more than one job waits, and the first waiting job. One statement for a group and three
-- for its jobs took twice as long.
-- States: 0 behind, 3 active.
SELECT
-- include: group-columns
, CASE WHEN coalesce(maxActive, :most) IS NULL THEN 0 ELSE (SELECT count(*) FROM jobs AS a
    WHERE a.queue = groups.queue AND
-- include: key
    = x'ff' || key AND a.state = 3) END,
  EXISTS (SELECT 1 FROM jobs AS b WHERE b.queue = groups.queue AND
-- include: key
    = x'ff' || key AND b.state = 0
    ORDER BY b.priority, b.ord LIMIT 1 OFFSET 1),
-- include: member-columns
FROM groups LEFT JOIN jobs ON job = (SELECT c.job FROM jobs AS c
    WHERE c.queue = groups.queue AND
-- include: key
    = x'ff' || key AND c.state = 0 ORDER BY c.priority, c.ord LIMIT 1)
WHERE groups.queue = :queue AND place = 1 AND (number, key) > (:number, :key) ORDER BY number, key LIMIT :count + 0
