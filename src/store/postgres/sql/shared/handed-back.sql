-- The new values of a job `j` whose lock ends without an outcome; `h.most`: how often it may stall.
-- States: 5 failed.
-- STALLED_REASON = job stalled more than allowable limit
state = CASE WHEN stalled_counter >= h.most THEN 5 ELSE
    -- include: waiting-state
  END,
lock_key = CASE WHEN stalled_counter >= h.most THEN lock_key ELSE
    -- include: waiting-key
  END,
ord = CASE WHEN stalled_counter >= h.most THEN _base + h.n ELSE -(_base + cardinality(_ids) - h.n) END,
stalled_counter = stalled_counter + CASE WHEN h.most IS NULL THEN 0 ELSE 1 END,
lost_by = CASE WHEN h.most IS NULL THEN lost_by ELSE h.loss END,
finished_on = CASE WHEN stalled_counter >= h.most THEN floor(_clock) END,
failed_reason = CASE WHEN stalled_counter >= h.most THEN 'job stalled more than allowable limit' ELSE failed_reason END,
session = NULL, fence = NULL, claim_seq = NULL, ends_at = NULL, timed = false
