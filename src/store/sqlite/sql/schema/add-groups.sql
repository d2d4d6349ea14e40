-- Groups of jobs (groups.ts), and the turns of each queue. `number`: the place in line; null if the group is out of line. `place` has the
-- numbers of PLACE in group.ts. `restsUntil`: the end of the block or of the used window, if the group rests. `level`: the limit of all
-- groups that keeps the group from the ring; null if only its own settings do.
CREATE TABLE IF NOT EXISTS turns (
  queue INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  plain INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS groups (
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  number INTEGER,
  place INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  maxActive REAL,
  rateMax REAL,
  rateMs REAL,
  limitedUntil INTEGER NOT NULL,
  windowEnds INTEGER NOT NULL,
  windowUsed INTEGER NOT NULL,
  restsUntil INTEGER NOT NULL,
  level REAL,
  PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS groupsInRing ON groups (queue, number, key) WHERE place = 1;
CREATE INDEX IF NOT EXISTS groupsResting ON groups (queue, restsUntil) WHERE place = 2;
CREATE INDEX IF NOT EXISTS groupsAside ON groups (queue, place, level, number, key) WHERE level IS NOT NULL;
CREATE INDEX IF NOT EXISTS groupsIdle ON groups (queue, max(limitedUntil, windowEnds)) WHERE place = 0;
