-- Takes the advisory lock that proves that a process lives ($1: its number in sessions.vouched). Returns false if another process has it.
-- ADVISORY.presence = 1214673780
SELECT pg_try_advisory_lock(1214673780, $1)
