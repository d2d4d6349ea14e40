-- Lists the groups behind one key up to another.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key > :after AND key <= :last
