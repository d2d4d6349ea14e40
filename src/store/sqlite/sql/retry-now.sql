-- Lets a failed job wait again, unless it was cancelled (MARK.cancelled = 256).
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: owned
AND marks & 256 = 0 RETURNING
-- include: left-columns
