-- Rates of queues, and metrics.
-- queues.rate_max, rate_ms: the rate of the queue; null: none. An older process keeps to a rate that a newer one set, because both call the
--   functions of this schema. To the older process the queue looks blocked until the window ends, and it waits for as long as the reply says.
-- queues.metric_points: how many minutes of each kind are kept; null: the queue does not count. The settles of older processes count too.
-- journal.minute, completions, failures: the jobs that a call finished, and the minute of that; null in a queue that does not count. So
--   settles do not meet on one row: `fold` adds them up.
-- metrics: the finished jobs of each minute since the epoch, if there were any. The row with minute -1 has all jobs before the kept points.
--   The first kept point has a row even if it is 0.
ALTER TABLE queues ADD COLUMN rate_max double precision, ADD COLUMN rate_ms double precision, ADD COLUMN metric_points int;
ALTER TABLE journal ADD COLUMN minute int, ADD COLUMN completions int, ADD COLUMN failures int;
CREATE TABLE metrics (
  queue int NOT NULL,
  kind text COLLATE "C" NOT NULL,
  minute int NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (queue, kind, minute)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
