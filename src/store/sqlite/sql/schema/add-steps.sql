-- Steps of jobs (steps.ts). The numbers of a job's steps begin with 1 and have no gaps. `total`: bytes of the names and values of this
-- step and all before it.
CREATE TABLE IF NOT EXISTS steps (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  total INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS stepsByName ON steps (job, name);
