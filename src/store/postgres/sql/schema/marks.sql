-- Marks and extras of jobs, and the entries of deduplication ids.
-- jobs.marks, jobs.extras: see marks.ts. dedup: the entries of deduplication ids. `job` owns the entry, `until` is its end, and `draft` a
--   job to add when the owner ends: its values, as JSON.
ALTER TABLE jobs ADD COLUMN marks smallint NOT NULL DEFAULT 0, ADD COLUMN extras text;
CREATE TABLE dedup (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  job text COLLATE "C" NOT NULL,
  until bigint,
  draft text,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX dedup_until ON dedup (until) WHERE until IS NOT NULL;
