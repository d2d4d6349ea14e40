-- Takes a lock waiter out of the line.
DELETE FROM places WHERE queue = :queue AND name = :name AND token = :token
