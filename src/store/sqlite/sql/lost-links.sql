-- Walks through open links of a queue, from one on: the status of the link, the state of the child (null if the child is gone), and the
-- extras of a failed child.
-- States: 5 failed.
SELECT parent, status, childQueue, child, jobs.state, CASE jobs.state WHEN 5 THEN jobs.extras END FROM links
LEFT JOIN queues ON queues.name = links.childQueue
LEFT JOIN jobs ON jobs.queue = queues.queue AND jobs.id = links.child
WHERE links.queue = :queue AND status <> 1 AND (parent, status, childQueue, child) > (:parent, :status, :childQueue, :child)
ORDER BY parent, status, childQueue, child LIMIT :count + 0
