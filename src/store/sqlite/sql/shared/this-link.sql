-- The link between a parent and a child.
queue = :queue AND parent = :parent AND childQueue = :childQueue AND child = :child
