-- Returns the jobs that a session claimed last, the last one first.
SELECT
-- include: held-columns
-- include: held-by-session
ORDER BY claimSeq DESC, fence DESC LIMIT :count + 0
