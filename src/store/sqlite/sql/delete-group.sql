-- Deletes a group.
DELETE FROM groups WHERE queue = :queue AND key = :key
