-- Links of a parent behind a child, in some states (a JSON list of numbers).
FROM links WHERE queue = :queue AND parent = :parent AND (childQueue, child) > (:childQueue, :child)
  AND status IN (SELECT value FROM json_each(:states)) ORDER BY childQueue, child LIMIT :count + 0
