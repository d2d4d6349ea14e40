-- Groups: turns, places and limits.

-- name: any-group-ready
-- Returns a row if a group is in the ring, or should be. `most`, `max`: the limits of all groups.
SELECT 1 WHERE EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 1)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND restsUntil <= :now)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 3 AND level < :most)
  OR EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND level < :max)

-- name: any-session
-- Finds out whether a session of the queue is open.
SELECT 1 FROM sessions WHERE queue = :queue AND reaped = 0 LIMIT 1

-- name: chunk-of-groups
-- Returns the last of the first keys of groups behind a key, and how many they are.
SELECT max(key), count(*) FROM (SELECT key FROM groups WHERE queue = :queue AND key > :after ORDER BY key LIMIT :count + 0)

-- name: count-of-group
-- Counts jobs of a group in one state, up to a limit.
SELECT count(*) FROM (SELECT 1
-- include: of-group
LIMIT :count + 0)

-- name: delete-empty-groups
-- Deletes groups without waiting and active jobs behind one key up to another.
-- States: 0 behind, 3 active.
DELETE FROM groups WHERE queue = :queue AND key > :after AND key <= :last AND NOT EXISTS (
-- include: jobs-of-groups
IN (0, 3))

-- name: delete-group
-- Deletes a group.
DELETE FROM groups WHERE queue = :queue AND key = :key

-- name: end-rests
-- Lets groups whose rest is over back into the ring, up to a limit.
UPDATE groups SET place = 1, level = NULL WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = 2 AND restsUntil <= :now ORDER BY restsUntil LIMIT :count + 0)

-- name: find-group
-- Finds a group.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key = :key

-- name: groups-aside
-- Returns whether a rest is over, and the lowest limit of all groups that keeps groups from the ring although the present one (`most`,
-- `max`) is higher: for places (3), for claims of a window (2).
SELECT EXISTS (SELECT 1 FROM groups WHERE queue = :queue AND place = 2 AND restsUntil <= :now),
  (SELECT min(level) FROM groups WHERE queue = :queue AND place = 3 AND level < :most),
  (SELECT min(level) FROM groups WHERE queue = :queue AND place = 2 AND level < :max)

-- name: list-groups
-- Lists the groups behind one key up to another.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key > :after AND key <= :last

-- name: look-again
-- Lets the first groups that an earlier limit keeps from the ring back into it. Claims check the present limits of a group in the ring.
UPDATE groups SET place = 1, level = NULL WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = :place AND level = :level ORDER BY number, key LIMIT :count + 0)

-- name: move-group
-- Writes the number and the place of a group. Writing the whole row took twice as long.
UPDATE groups SET number = :number, place = :place, restsUntil = :restsUntil, level = :level WHERE queue = :queue AND key = :key

-- name: next-level
-- Returns the lowest limit of all groups between two limits that keeps groups from the ring.
SELECT min(level) FROM groups WHERE queue = :queue AND place = :place AND level > :level AND level < :limit

-- name: next-rest
-- Finds when the first rest ends of a group with a waiting job.
-- States: 0 behind.
SELECT restsUntil FROM groups WHERE queue = :queue AND place = 2 AND restsUntil > :now AND EXISTS (
-- include: jobs-of-groups
= 0) ORDER BY restsUntil LIMIT 1

-- name: page-of-groups
-- Lists groups with waiting or active jobs, or settings, from a key on.
-- States: 0 behind, 3 active.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key > :after
  AND (paused = 1 OR maxActive IS NOT NULL OR rateMax IS NOT NULL OR EXISTS (
-- include: jobs-of-groups
IN (0, 3))) ORDER BY key LIMIT :count + 0

-- name: place-of-group
-- Returns the place of a group.
SELECT place FROM groups WHERE queue = :queue AND key = :key

-- name: read-turns
-- Reads the numbers of the last turn, and of the last turn of a job without a group.
SELECT last, plain FROM turns WHERE queue = :queue

-- name: renumber-group
-- Gives a group another number in line. Writing the whole row touches every index of the table.
UPDATE groups SET number = :number WHERE queue = :queue AND key = :key

-- name: set-group
-- Writes a group.
INSERT INTO groups (queue,
-- include: group-columns
, restsUntil, level)
VALUES (:queue, :key, :number, :paused, :maxActive, :rateMax, :rateMs, :limitedUntil, :windowEnds, :windowUsed, :place, :restsUntil, :level)
ON CONFLICT DO UPDATE SET number = excluded.number, paused = excluded.paused, maxActive = excluded.maxActive,
  rateMax = excluded.rateMax, rateMs = excluded.rateMs, limitedUntil = excluded.limitedUntil, windowEnds = excluded.windowEnds,
  windowUsed = excluded.windowUsed, place = excluded.place, restsUntil = excluded.restsUntil, level = excluded.level

-- name: set-turns
-- Writes the turns of a queue.
INSERT INTO turns (queue, last, plain) VALUES (:queue, :last, :plain)
ON CONFLICT DO UPDATE SET last = excluded.last, plain = excluded.plain

-- name: any-idle-group
-- Returns a row if `delete-idle-groups` would delete a group.
SELECT 1 FROM groups WHERE queue = :queue AND place = 0 AND max(limitedUntil, windowEnds) <= :now LIMIT 1

-- name: delete-idle-groups
-- Deletes groups without jobs and settings whose blocks and windows have ended, up to a limit.
DELETE FROM groups WHERE queue = :queue AND key IN (SELECT key FROM groups
  WHERE queue = :queue AND place = 0 AND max(limitedUntil, windowEnds) <= :now LIMIT :count + 0)

-- name: next-of-group
-- Returns the first jobs of a group in one state behind a place.
SELECT
-- include: member-columns
-- include: of-group
AND (priority, ord) > (:priority, :ord) ORDER BY priority, ord LIMIT :count + 0

-- name: page-of-ring
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

-- part: group-columns
-- All columns of a group (GroupRow in group.ts).
key, number, paused, maxActive, rateMax, rateMs, limitedUntil, windowEnds, windowUsed, place

-- part: jobs-of-groups
-- Jobs of the groups that a statement reads. `of-group` explains their key.
SELECT 1 FROM jobs WHERE jobs.queue = groups.queue AND
-- include: key
= x'ff' || key AND state

-- part: member-columns
-- Columns that a claim needs of a job of a group (MemberRow in record.ts).
-- include: waiting-columns
, ord

-- part: of-group
-- Jobs of a group in one state. Their key begins with a byte that no text has, so it is no lock key of a user.
FROM jobs WHERE jobs.queue = :queue AND
-- include: key
= x'ff' || :group AND state = :state
