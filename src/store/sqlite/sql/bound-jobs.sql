-- Returns the jobs that a session claimed last, without those whose locks have their own end. The last one comes first.
SELECT
-- include: held-columns
-- include: held-by-session
AND endsAt IS NULL ORDER BY claimSeq DESC, fence DESC LIMIT :count + 0
