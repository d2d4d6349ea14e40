-- The lock_key of a job that waits from now on: that of its group, if it has one.
-- MARK.key = 1
CASE WHEN marks & 1 > 0 THEN extras::json ->> 'g' ELSE lock_key END
