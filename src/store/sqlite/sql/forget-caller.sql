-- Deletes a caller.
DELETE FROM callers WHERE queue = :queue AND id = :caller
