-- Links of a parent behind a child, in one state that is not processed (1). INDEXED BY: SQLite would walk through all links of the parent.
FROM links INDEXED BY linksOpen
WHERE queue = :queue AND parent = :parent AND status = :state AND status <> 1 AND (childQueue, child) > (:childQueue, :child)
ORDER BY childQueue, child LIMIT :count + 0
