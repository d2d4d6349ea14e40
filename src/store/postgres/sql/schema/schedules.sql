-- Schedules (contract/scheduling.ts).
-- schedules: `next_job` is the next job, `at` and `count` are those of its slot. A row with version 0 is never committed.
-- queues.scheduled: the queue has or had schedules. Without it, claims do not look for schedules that owe a job.
ALTER TABLE queues ADD COLUMN scheduled boolean NOT NULL DEFAULT false;
CREATE TABLE schedules (
  queue int NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  spec text NOT NULL DEFAULT '',
  serial boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'running',
  at double precision NOT NULL DEFAULT 0,
  count double precision NOT NULL DEFAULT 0,
  next_job text COLLATE "C",
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX schedules_by_slot ON schedules (queue, at, id);
CREATE INDEX schedules_owing ON schedules (queue, version) WHERE state = 'owing';
