-- Lets a failed job wait again.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: counted-failure
,
-- include: unlocked
WHERE
-- include: owned
RETURNING
-- include: left-columns
