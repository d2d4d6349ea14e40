-- Hands a row back to waiting.
UPDATE jobs SET
-- include: to-waiting
, ord = :ord,
-- include: unlocked
WHERE job = :job
