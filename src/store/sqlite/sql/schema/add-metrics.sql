-- Finished jobs of each minute (minute-counts.ts). `kind`: the number of the state. `total`: all jobs up to this minute.
CREATE TABLE IF NOT EXISTS metrics (
  queue INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  count INTEGER NOT NULL,
  total INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, minute)
) STRICT, WITHOUT ROWID;
