-- Version 3: graces. With these indexes the cost of a probe depends on the number of processes and suspected sessions, not on the
-- number of sessions.
ALTER TABLE sessions ADD COLUMN graceMs REAL NOT NULL DEFAULT 2000;
CREATE INDEX sessionsByPresence ON sessions (queue, presence) WHERE reaped = 0 AND suspected = 0;
CREATE INDEX sessionsSuspected ON sessions (queue, expiresAt) WHERE reaped = 0 AND suspected = 1;

PRAGMA user_version = 3;
