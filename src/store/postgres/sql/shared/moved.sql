-- The new values of the job of the outcome `o`, if the job stays.
-- A delay sets the signal that a job with steps awaits, or clears it.
-- MARK.steps = 32
-- States: 2 delayed, 4 completed, 5 failed, 6 waiting-children.
state = CASE o.kind WHEN 'completed' THEN 4 WHEN 'failed' THEN 5 WHEN 'retry later' THEN 2 WHEN 'delay' THEN 2 WHEN 'children' THEN 6
  ELSE
    -- include: waiting-state
  END,
lock_key = CASE WHEN o.kind IN ('retry', 'release', 'return') THEN
    -- include: waiting-key
  ELSE lock_key END,
ord = CASE WHEN o.lifo THEN -(_base + o.n) ELSE _base + o.n END, delay = coalesce(o.delay, 0), due_at = ceil(_clock + o.delay),
attempts_made = attempts_made + CASE WHEN o.kind IN ('delay', 'release', 'return', 'children') THEN 0 ELSE 1 END,
attempts_started = attempts_started - CASE WHEN o.kind = 'return' THEN 1 ELSE 0 END,
finished_on = CASE WHEN o.kind IN ('completed', 'failed') THEN floor(_clock) END,
returnvalue = CASE WHEN o.kind = 'completed' THEN o.said ELSE returnvalue END,
failed_reason = CASE WHEN o.kind IN ('failed', 'retry', 'retry later') THEN o.said ELSE failed_reason END,
stacktrace = coalesce(o.stack, stacktrace),
extras = CASE WHEN marks & 32 > 0 AND o.kind IN ('delay', 'retry later') THEN
    (extras::jsonb - 'w' || jsonb_strip_nulls(jsonb_build_object('w', CASE WHEN o.kind = 'delay' THEN o.said END)))::text
  ELSE extras END,
-- Who finished it stays in the row, so that a repeated finish is recognised.
session = CASE WHEN o.kind IN ('completed', 'failed') THEN session END,
fence = CASE WHEN o.kind IN ('completed', 'failed') THEN j.fence END, claim_seq = NULL, ends_at = NULL, timed = false
