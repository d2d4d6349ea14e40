-- Families: the links between parents and children.

-- name: add-mark
-- Sets a mark of a row.
UPDATE jobs SET marks = marks | :mark WHERE job = :job

-- name: job-delay
-- Returns the delay of a row.
SELECT delay FROM jobs WHERE job = :job

-- name: release-later
-- Delays a parent whose children have ended.
-- States: 2 delayed.
UPDATE jobs SET state = 2, ord = :ord, dueAt = :dueAt WHERE job = :job

-- name: set-extras
-- Writes the extras of a row, and clears and sets some of its marks.
UPDATE jobs SET marks = marks & ~:cleared | :added, extras = :extras WHERE job = :job

-- name: all-links
-- Lists the children of a parent.
SELECT childQueue, child FROM links WHERE queue = :queue AND parent = :parent ORDER BY childQueue, child

-- name: bytes-of-links
-- Returns the bytes of the texts of links.
SELECT coalesce(octet_length(text), 0)
-- include: links-of-states

-- name: bytes-of-open-links
-- Returns the bytes of the texts of links that are pending, failed or ignored.
SELECT coalesce(octet_length(text), 0)
-- include: open-links

-- name: count-link
-- Counts links that go from one state to another; -1: the links are deleted. Returns the number of pending links.
UPDATE families SET pending = pending + :by * ((:to = 0) - (:from = 0)), processed = processed + :by * ((:to = 1) - (:from = 1)),
  failed = failed + :by * ((:to = 2) - (:from = 2)), ignored = ignored + :by * ((:to = 3) - (:from = 3))
WHERE queue = :queue AND id = :parent RETURNING pending

-- name: count-new-link
-- Counts a pending link that is new.
INSERT INTO families (queue, id, pending, processed, failed, ignored) VALUES (:queue, :parent, 1, 0, 0, 0)
ON CONFLICT DO UPDATE SET pending = pending + 1

-- name: delete-family
-- Deletes the numbers of a parent's links.
DELETE FROM families WHERE queue = :queue AND id = :parent

-- name: delete-links
-- Deletes all links of a parent.
DELETE FROM links WHERE queue = :queue AND parent = :parent

-- name: delete-pending-link
-- Deletes a pending link (LINK_STATES: 0 pending).
DELETE FROM links WHERE
-- include: this-link
AND status = 0

-- name: end-link
-- Ends a pending link (LINK_STATES: 0 pending).
UPDATE links SET status = :to, text = :text WHERE
-- include: this-link
AND status = 0

-- name: find-family
-- Returns the numbers of a parent's links, if the job is a parent (MARK.parent = 4).
SELECT pending, processed, failed, ignored FROM families WHERE queue = :queue AND id = :parent
  AND EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = families.queue AND jobs.id = families.id AND marks & 4 <> 0)

-- name: find-link
-- Returns the state of a link.
SELECT status FROM links WHERE
-- include: this-link

-- name: insert-link
-- Makes a pending link (LINK_STATES: 0 pending). Changes nothing if the link exists.
INSERT INTO links (queue, parent, childQueue, child, status) VALUES (:queue, :parent, :childQueue, :child, 0) ON CONFLICT DO NOTHING

-- name: read-links
-- Reads links of a parent.
SELECT childQueue, child, status, text
-- include: links-of-states

-- name: read-open-links
-- Reads links of a parent that are pending, failed or ignored.
SELECT childQueue, child, status, text
-- include: open-links

-- name: set-link
-- Changes the state of a link.
UPDATE links SET status = :to, text = :text WHERE
-- include: this-link

-- part: links-of-states
-- Links of a parent behind a child, in some states (a JSON list of numbers).
FROM links WHERE queue = :queue AND parent = :parent AND (childQueue, child) > (:childQueue, :child)
  AND status IN (SELECT value FROM json_each(:states)) ORDER BY childQueue, child LIMIT :count + 0

-- part: open-links
-- Links of a parent behind a child, in one state that is not processed (1). INDEXED BY: SQLite would walk through all links of the parent.
FROM links INDEXED BY linksOpen
WHERE queue = :queue AND parent = :parent AND status = :state AND status <> 1 AND (childQueue, child) > (:childQueue, :child)
ORDER BY childQueue, child LIMIT :count + 0

-- part: this-link
-- The link between a parent and a child.
queue = :queue AND parent = :parent AND childQueue = :childQueue AND child = :child
