-- True if the entry `d`, whose owner is `j`, counts.
-- States: 3 active.
coalesce(d.until > _now, j.state + 0 <= 3, false)
