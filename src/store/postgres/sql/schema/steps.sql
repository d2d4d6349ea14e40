-- Steps of jobs (contract/steps.ts), and notices of cancels.
-- steps: `ord` counts the steps of a job from 1, and `upto` is the bytes of its names and values up to this one. So the last row of a job has both
--   sums. Only a transaction that holds the lock of the job changes its steps. The index has hashes, because names can be long.
-- revocations.kind: see Notice in contract/sessions.ts.
CREATE TABLE steps (
  queue int NOT NULL,
  job text COLLATE "C" NOT NULL,
  ord int NOT NULL,
  upto int NOT NULL,
  name text COLLATE "C" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (queue, job, ord)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX steps_by_name ON steps (queue, job, hashtextextended(name, 0));
ALTER TABLE revocations ADD COLUMN kind text NOT NULL DEFAULT 'revoked';
