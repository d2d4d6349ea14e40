-- Counts the jobs that were taken in the window of the rate limit, and opens a window if there is none. The `max` of the queue and the
-- duration of the claim come first (job/rate.ts).
UPDATE queues
SET window_ends = CASE WHEN window_ends > _now THEN window_ends ELSE coalesce(ceil(_clock + coalesce(_window, rate_ms)), 0) END,
  window_used = CASE WHEN window_ends > _now THEN window_used ELSE 0 END + _taken, window_max = coalesce(rate_max, _max, window_max)
WHERE queue = _queue RETURNING * INTO _row;
