-- Releases a named lock.
DELETE FROM named WHERE queue = :queue AND name = :name AND token = :token
