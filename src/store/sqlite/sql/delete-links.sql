-- Deletes all links of a parent.
DELETE FROM links WHERE queue = :queue AND parent = :parent
