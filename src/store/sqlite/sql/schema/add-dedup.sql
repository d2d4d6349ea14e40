-- Entries of deduplication (entries.ts).
CREATE TABLE IF NOT EXISTS dedup (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  until INTEGER,
  draft TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dedupEnding ON dedup (queue, until) WHERE until IS NOT NULL;
