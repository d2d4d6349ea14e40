-- Inserts a new job with marks. Changes nothing if its id exists. shared/of-group.sql explains the key of a group.
INSERT INTO jobs (
-- include: new-columns
, marks, extras) VALUES (
-- include: new-values
, coalesce(x'ff' || :group, :key), :marks, :extras) ON CONFLICT (queue, id) DO NOTHING
