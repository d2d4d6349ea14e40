-- Lists groups with waiting or active jobs, or settings, from a key on.
-- States: 0 behind, 3 active.
SELECT
-- include: group-columns
FROM groups WHERE queue = :queue AND key > :after
  AND (paused = 1 OR maxActive IS NOT NULL OR rateMax IS NOT NULL OR EXISTS (
-- include: jobs-of-groups
IN (0, 3))) ORDER BY key LIMIT :count + 0
