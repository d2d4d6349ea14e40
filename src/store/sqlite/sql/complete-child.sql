-- Completes a job whose only mark says that it has parents (MARK.child = 2).
-- include: completed
AND marks = 2 AND lockKey IS NULL RETURNING extras
