-- Sets the state of a job that starts to wait. A job with a key is behind until key-groups.ts finds that it is the first.
-- States: 0 behind, 1 waiting.
state = CASE WHEN
-- include: key
IS NULL THEN 1 ELSE 0 END
