-- Adding jobs.

-- name: insert-marked-job
-- Inserts a new job with marks. Changes nothing if its id exists. `of-group` in groups.sql explains the key of a group.
INSERT INTO jobs (
-- include: new-columns
, marks, extras) VALUES (
-- include: new-values
, coalesce(x'ff' || :group, :key), :marks, :extras) ON CONFLICT (queue, id) DO NOTHING

-- name: insert-plain-job
-- Inserts a new job without marks. Changes nothing if its id exists.
INSERT INTO jobs (
-- include: new-columns
) VALUES (
-- include: new-values
, :key) ON CONFLICT (queue, id) DO NOTHING

-- name: temporary-twin
-- Returns a temporary table or view of a connection that has the name of a table of the file, and would be taken for it.
SELECT name FROM sqlite_temp_schema WHERE type IN ('table', 'view') AND name IN (SELECT name FROM main.sqlite_schema) LIMIT 1

-- part: new-columns
-- Columns of every new job. record.ts writes those of the second line.
queue, id, state, ord, dueAt, addedAt,
priority, delay, timestamp, name, opts, data,
-- include: key

-- part: new-values
-- Values of `new-columns` but for the key.
:queue, :id, :state, :ord, :dueAt, :now,
:priority, :delay, :timestamp, :name, :opts, :data
