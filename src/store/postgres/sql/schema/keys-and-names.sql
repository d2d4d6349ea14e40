-- Lock keys and named locks.
-- jobs_taken enforces that at most one job of a key is active, even if other code is wrong.
-- freed_keys: keys that may have come free since the last claim checked them (sql/first-of-keys.sql).
-- named: the owner of each named lock; the row of a free name is never committed. lock_places: the lock waiters.
-- States: -1 behind, 0 keyed, 3 active.
ALTER TABLE jobs ADD COLUMN lock_key text COLLATE "C";
CREATE INDEX jobs_keyed ON jobs (queue, priority, ord) WHERE state = 0;
CREATE INDEX jobs_behind ON jobs (queue, priority, ord) WHERE state = -1;
CREATE INDEX jobs_of_key ON jobs (queue, lock_key, priority, ord) WHERE lock_key IS NOT NULL AND state <= 0;
CREATE UNIQUE INDEX jobs_taken ON jobs (queue, lock_key) WHERE lock_key IS NOT NULL AND state = 3;

CREATE TABLE freed_keys (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  lock_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

ALTER TABLE queues ADD COLUMN max_active double precision;
ALTER TABLE sessions ADD COLUMN instance text NOT NULL DEFAULT '', ADD COLUMN slots double precision NOT NULL DEFAULT 1;

CREATE TABLE named (
  queue int NOT NULL,
  name text COLLATE "C" NOT NULL,
  token text COLLATE "C",
  session text COLLATE "C",
  fence bigint,
  since bigint,
  PRIMARY KEY (queue, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX named_of_session ON named (queue, session, name);

CREATE TABLE lock_places (
  queue int NOT NULL,
  name text COLLATE "C" NOT NULL,
  place bigint GENERATED ALWAYS AS IDENTITY,
  token text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  kept_until bigint NOT NULL,
  PRIMARY KEY (queue, name, place)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX lock_places_of_session ON lock_places (queue, session, place);
