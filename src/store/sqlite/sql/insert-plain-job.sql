-- Inserts a new job without marks. Changes nothing if its id exists.
INSERT INTO jobs (
-- include: new-columns
) VALUES (
-- include: new-values
, :key) ON CONFLICT (queue, id) DO NOTHING
