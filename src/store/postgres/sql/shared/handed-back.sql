-- The new values of a job `j` whose lock ends without an outcome; `h.most`: how often it may stall. A cancelled job fails.
-- States: 5 failed.
-- MARK.cancelled = 256
-- STALLED_REASON = job stalled more than allowable limit
state = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN 5 ELSE
    -- include: waiting-state
  END,
lock_key = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN lock_key ELSE
    -- include: waiting-key
  END,
ord = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN _base + h.n ELSE -(_base + cardinality(_ids) - h.n) END,
stalled_counter = stalled_counter + CASE WHEN h.most IS NULL THEN 0 ELSE 1 END,
lost_by = CASE WHEN h.most IS NULL THEN lost_by ELSE h.loss END,
finished_on = CASE WHEN marks & 256 > 0 OR stalled_counter >= h.most THEN floor(_clock) END,
failed_reason = CASE WHEN marks & 256 > 0 THEN extras::json ->> 'c' WHEN stalled_counter >= h.most THEN 'job stalled more than allowable limit' ELSE failed_reason END,
session = NULL, fence = NULL, claim_seq = NULL, ends_at = NULL, timed = false
