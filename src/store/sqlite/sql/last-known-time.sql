-- Returns the latest past time that the file records.
SELECT max((SELECT ifnull(max(touchedAt), 0) FROM queues),
  (SELECT ifnull(max(expiresAt - durationMs), 0) FROM sessions))
