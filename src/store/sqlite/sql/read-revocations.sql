-- Reads the revocations of a session that come after a number.
SELECT number, job, fence, reason FROM revocations WHERE queue = :queue AND session = :session AND number > :number ORDER BY number
