-- Waits until no other process migrates the schema of this name ($1).
-- ADVISORY.migration = 1214673781
SELECT pg_advisory_xact_lock(1214673781, hashtext($1))
