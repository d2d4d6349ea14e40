-- Deletes groups without waiting and active jobs behind one key up to another.
-- States: 0 behind, 3 active.
DELETE FROM groups WHERE queue = :queue AND key > :after AND key <= :last AND NOT EXISTS (
-- include: jobs-of-groups
IN (0, 3))
