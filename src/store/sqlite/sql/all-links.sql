-- Lists the children of a parent.
SELECT childQueue, child FROM links WHERE queue = :queue AND parent = :parent ORDER BY childQueue, child
