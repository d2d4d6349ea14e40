-- Locks the chosen jobs with a key.
-- States: 1 waiting.
SELECT j.* FROM unnest(_chosen.ids) o(id),
  LATERAL (
    SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size, priority, ord FROM jobs
    WHERE queue = _queue AND id = o.id AND state + 0 <= 1 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
  ) j
