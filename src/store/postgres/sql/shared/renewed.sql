-- The new values of a renewed session, before its slots. A renewal moves `look_at` only if the server's clock was set back. Otherwise a
-- session that dies then would be checked only at the old, later time.
expires_at = ceil(clock_ms() + duration_ms), look_at = least(look_at, floor(clock_ms() + duration_ms)),
renewals = renewals + 1, suspected = false, spared_until = NULL,
