-- Deletes the numbers of a parent's links.
DELETE FROM families WHERE queue = :queue AND id = :parent
