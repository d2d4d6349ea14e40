-- Fails a row that stalled too often.
-- States: 5 failed.
UPDATE jobs SET state = 5, ord = :ord, finishedOn = :now, failedReason = :reason,
-- include: stalled
,
-- include: unlocked
WHERE job = :job RETURNING opts
