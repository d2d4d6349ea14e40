-- Applies one outcome, whose job stays, and is neither cancelled nor a parent: the links of a parent are read under the lock of its job, as in move-outcomes.sql.
-- Returns a row as move-outcomes.sql does.
-- States: 3 active.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.parent = 4
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
UPDATE jobs j
SET
  -- include: moved
FROM (
  SELECT _kinds[1] AS kind, _texts[1] AS said, _stacks[1] AS stack, _delays[1] AS delay, _lifos[1] AS lifo, 1 AS n
) o
WHERE j.queue = _queue AND j.id = _ids[1] AND j.state + 0 = 3 AND j.session = _owners[1] AND j.fence = _fences[1]
  AND j.marks & (4 | 256) = 0 AND o.kind <> 'children'
RETURNING o.kind, 1 AS jobs, (j.priority = 0)::int AS plain, 1 AS kept, _keep_counts[1] AS most, _keep_ages[1] AS age,
  '{1}'::bigint[] AS ns, _ids AS ids, NULL::boolean[] AS removed, _texts AS said, _delays AS delays,
  ARRAY[CASE WHEN _early[1] IS NOT TRUE THEN j.attempts_made END] AS attempts, NULL::text[] AS logged,
  CASE WHEN j.lock_key IS NOT NULL AND j.marks & 1 = 0 THEN ARRAY[j.lock_key::text] END AS keys,
  CASE WHEN j.marks & 1 > 0 THEN ARRAY[j.extras::json ->> 'g'] END AS groups,
  CASE WHEN j.marks & 1 > 0 AND j.lock_key IS NOT NULL THEN ARRAY[j.lock_key::text] END AS entered,
  CASE WHEN j.marks > 1 AND o.kind IN ('completed', 'failed') THEN _ids END AS marked,
  CASE WHEN j.marks & (2 | 64 | 128) > 0 AND o.kind IN ('completed', 'failed') THEN _ids END AS kin,
  NULL::boolean[] AS kin_gone,
  CASE WHEN j.marks > 1 AND o.kind IN ('completed', 'failed') THEN ARRAY[j.extras] END AS extras
