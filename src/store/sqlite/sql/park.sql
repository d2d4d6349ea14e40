-- Lets a running job wait for its children.
-- States: 6 waiting-children.
UPDATE jobs SET state = 6, ord = :ord, delay = 0, dueAt = NULL,
-- include: unlocked
WHERE
-- include: owned
RETURNING
-- include: left-columns
