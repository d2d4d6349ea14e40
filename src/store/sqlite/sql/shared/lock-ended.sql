-- Ends the lock of a job that finishes. The token that finished the job stays, so the store recognises a repeated finish.
claimSeq = NULL, endsAt = NULL, timed = 0
