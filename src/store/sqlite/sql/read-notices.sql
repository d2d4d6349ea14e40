-- Reads the notices of a session that come after a number.
SELECT number, job, fence, reason, kind FROM revocations WHERE queue = :queue AND session = :session AND number > :number ORDER BY number
