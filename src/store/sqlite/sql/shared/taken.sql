-- Grants the lock of a job to a session.
-- States: 3 active.
state = 3, session = :session, claimSeq = :seq, processedOn = :now, processedBy = :by, endsAt = :endsAt, timed = :timed,
attemptsStarted = attemptsStarted + 1
