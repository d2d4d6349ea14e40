-- Deletes the notices of a session up to a number.
DELETE FROM revocations WHERE queue = :queue AND session = :session AND number <= :number
