-- Returns the last call of a caller.
SELECT seq, reply FROM callers WHERE queue = :queue AND id = :caller
