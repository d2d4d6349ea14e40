-- True if the children of the job `j`, if it has any, allow the outcome `o`, and the job is not one that fails instead because it was cancelled.
-- The caller holds the lock of the job.
-- MARK.parent = 4
-- MARK.cancelled = 256
CASE WHEN j.marks & 4 > 0 OR o.kind = 'children' THEN outcome_refusal(_queue, o.id, o.kind, o.said) IS NULL ELSE true END
AND (j.marks & 256 = 0 OR o.kind IN ('completed', 'failed'))
