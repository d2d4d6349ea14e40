-- The session `s` is open, and not suspected.
s.reaped + 0 = 0 AND s.expires_at > _now AND NOT s.suspected
