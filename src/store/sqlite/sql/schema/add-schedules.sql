-- Schedules (schedules.ts). `nextJob`: the id of the next job.
CREATE TABLE IF NOT EXISTS schedules (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  spec TEXT NOT NULL,
  serial INTEGER NOT NULL,
  state TEXT NOT NULL,
  at REAL NOT NULL,
  count INTEGER NOT NULL,
  nextJob TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS schedulesBySlot ON schedules (queue, at, id);
CREATE INDEX IF NOT EXISTS schedulesOwing ON schedules (queue, state) WHERE state = 'owing';
