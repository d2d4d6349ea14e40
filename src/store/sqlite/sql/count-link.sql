-- Counts a link that goes from one state to another; -1: the link is deleted. Returns the number of pending links.
UPDATE families SET pending = pending - (:from = 0) + (:to = 0), processed = processed - (:from = 1) + (:to = 1),
  failed = failed - (:from = 2) + (:to = 2), ignored = ignored - (:from = 3) + (:to = 3)
WHERE queue = :queue AND id = :parent RETURNING pending
