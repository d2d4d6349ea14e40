-- Lists the locks of a session.
SELECT id, fence, claimSeq
-- include: held-by-session
ORDER BY fence
