-- The number of waiters before _place, or of all waiters.
(
  SELECT count(*) FROM (
    -- include: waiters
  ) line
  WHERE _place IS NULL OR place < _place
)
