-- Returns jobs whose lock has reached its own end.
SELECT
-- include: held-columns
, session, timed FROM jobs WHERE queue = :queue AND endsAt IS NOT NULL AND endsAt <= :now ORDER BY endsAt LIMIT :count + 0
