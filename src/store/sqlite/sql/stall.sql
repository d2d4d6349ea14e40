-- Lets a stalled row wait again.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: stalled
,
-- include: unlocked
WHERE job = :job
