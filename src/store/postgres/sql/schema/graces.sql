-- The grace of suspected sessions.
-- Neither index has a column that a renewal changes, so a renewal still writes only one row.
ALTER TABLE sessions ADD COLUMN grace_ms double precision NOT NULL DEFAULT 2000;
CREATE INDEX sessions_vouched ON sessions (queue, vouched) WHERE reaped = 0 AND NOT suspected AND vouched IS NOT NULL;
CREATE INDEX sessions_suspected ON sessions (queue) WHERE reaped = 0 AND suspected;
