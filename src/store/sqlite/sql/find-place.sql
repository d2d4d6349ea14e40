-- Returns the place of a lock waiter in line.
SELECT place FROM places WHERE queue = :queue AND name = :name AND token = :token AND keptUntil > :now
