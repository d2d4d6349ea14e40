-- Counts links that go from one state to another; -1: the links are deleted. Returns the number of pending links.
UPDATE families SET pending = pending + :by * ((:to = 0) - (:from = 0)), processed = processed + :by * ((:to = 1) - (:from = 1)),
  failed = failed + :by * ((:to = 2) - (:from = 2)), ignored = ignored + :by * ((:to = 3) - (:from = 3))
WHERE queue = :queue AND id = :parent RETURNING pending
