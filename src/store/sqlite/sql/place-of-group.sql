-- Returns the place of a group.
SELECT place FROM groups WHERE queue = :queue AND key = :key
