-- Moves the end of a lock.
UPDATE jobs SET endsAt = :endsAt WHERE
-- include: owned
