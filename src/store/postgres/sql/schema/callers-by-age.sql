-- The age of callers.
-- callers.look_at: when the row may be too old. A call never changes it, so a call changes no index (sql/prune-callers.sql).
ALTER TABLE callers ADD COLUMN look_at bigint NOT NULL DEFAULT 0;
CREATE INDEX callers_looked_at ON callers (look_at);
