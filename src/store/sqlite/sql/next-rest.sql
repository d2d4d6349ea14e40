-- Finds when the first rest ends of a group with a waiting job.
-- States: 0 behind.
SELECT restsUntil FROM groups WHERE queue = :queue AND place = 2 AND restsUntil > :now AND EXISTS (
-- include: jobs-of-groups
= 0) ORDER BY restsUntil LIMIT 1
