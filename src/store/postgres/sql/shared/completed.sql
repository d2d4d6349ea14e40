-- The new values of a completed job that stays, beside its place in the list and its result.
-- States: 4 completed.
state = 4, delay = 0, due_at = NULL, attempts_made = attempts_made + 1, finished_on = _now, claim_seq = NULL, ends_at = NULL,
timed = false
