-- Ends the sessions of an earlier boot: their owners are dead.
UPDATE sessions SET expiresAt = 0 WHERE reaped < 2
