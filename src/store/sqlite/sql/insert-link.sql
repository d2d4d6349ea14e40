-- Makes a pending link (LINK_STATES: 0 pending). Changes nothing if the link exists.
INSERT INTO links (queue, parent, childQueue, child, status) VALUES (:queue, :parent, :childQueue, :child, 0) ON CONFLICT DO NOTHING
