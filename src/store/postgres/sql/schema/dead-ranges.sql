-- Ranges of lists without a living row.
-- dead_ranges: where lists of a queue have no living row (sql/find-dead-ranges.sql). A queue has a row only while skipping helps. `place`, `freed`
-- and `journal_number` are the last numbers drawn, at the time of writing, for places, freed keys and the journal. `journal_writers` are
-- the transactions that had written to the journal then, and had not ended.
CREATE TABLE dead_ranges (
  queue int PRIMARY KEY,
  priorities int[] NOT NULL,
  heads bigint[] NOT NULL,
  head_keyed bigint NOT NULL,
  head_freed bigint NOT NULL,
  place bigint NOT NULL,
  freed bigint NOT NULL,
  journal_from bigint NOT NULL,
  journal_number bigint NOT NULL,
  journal_writers text[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
