-- Inserts the jobs `o`.
-- States: 1 waiting, 2 delayed.
INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, due_at, timestamp, id, name, opts, data, lock_key, marks, extras)
SELECT _queue, CASE WHEN delay > 0 THEN 2 ELSE coalesce(lane, 1) END, coalesce(priority, 0),
  CASE WHEN lifo AND coalesce(delay, 0) <= 0 THEN -(_base + n) ELSE _base + n END, _base + n, floor(_clock), coalesce(delay, 0),
  CASE WHEN delay > 0 THEN ceil(_clock + delay) END, timestamp, id, name, opts, data, key, coalesce(marks, 0), extras
