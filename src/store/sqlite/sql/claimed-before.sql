-- Returns the jobs that a call has claimed.
SELECT
-- include: job-columns
, fence
-- include: held-by-session
AND claimSeq = :seq ORDER BY fence
