-- Moves the end of a lock. With `alone` = 1, the lock becomes a timed lock.
UPDATE jobs SET endsAt = :endsAt, timed = timed | :alone WHERE
-- include: owned
