-- True if nothing limits claims of the queue `q`, and its fences are those of this run of the server.
NOT q.paused AND q.limited_until <= _now AND q.window_ends <= _now AND q.max_active IS NULL AND q.rate_max IS NULL
  AND q.fenced_on = pg_postmaster_start_time()
