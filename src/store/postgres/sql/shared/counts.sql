-- True if the entry `d`, whose owner is `j`, counts.
-- States: 4 completed, 5 failed.
coalesce(d.until > _now, j.state + 0 NOT IN (4, 5), false)
