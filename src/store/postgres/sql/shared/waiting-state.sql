-- The state of a job that waits from now on.
-- States: -2 grouped, 0 keyed, 1 waiting.
-- MARK.key = 1
CASE WHEN marks & 1 > 0 THEN -2 WHEN lock_key IS NULL THEN 1 ELSE 0 END
