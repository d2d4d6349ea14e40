-- Completes consecutive rows whose ids and fences are consecutive too. CAST: a binding may pass numbers as REAL, and the text of a REAL
-- ends in ".0".
-- States: 3 active, 4 completed.
UPDATE jobs SET state = 4, ord = job + CAST(:place AS INTEGER), finishedOn = :now, returnvalue = :value,
  attemptsMade = attemptsMade + 1,
-- include: lock-ended
WHERE job BETWEEN :first AND :last AND queue = :queue AND state = 3 AND session = :session
  AND fence = job + CAST(:fence AS INTEGER) AND id = CAST(job + CAST(:id AS INTEGER) AS TEXT) AND
-- include: plain
