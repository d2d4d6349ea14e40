-- Groups (contract/groups.ts).
-- queues.grouped: the queue has or had jobs of groups. Without it, claims do not look for groups. group_max, group_rate_max, group_rate_ms:
--   the limits of each group that has none of its own.
-- groups: `turn` is the number of the group in line; null: not in line. `place` is false while the group is paused or full. `rests_until` is
--   the end of its block or of its used window. Both are as true as the row: a claim first applies the notes of the group. The row ''
--   stands for the jobs without a group: `turn` is their number, and `last_turn` that of the last turn of the queue.
--   Only a transaction that holds the lock of a group's row changes the row, or deletes notes of the group. Claims skip rows that other
--   transactions hold, so a claim goes on with the next group.
--   Rows of groups are made under an advisory lock (groups-lock.sql).
-- group_notes: jobs of a group that left active (`freed`), or began to wait (`entered`), since the last claim applied them. So adds and
--   settles never wait for a lock of a group, and a user's transaction that adds jobs holds up no claim. A settle writes no notes for the
--   groups whose rows it could lock.
-- A waiting job of a group has the state -2 and the key of the group in lock_key, so that jobs_of_key finds the first job of each group. In
-- all other states the key is in the extras alone: the unique index of taken lock keys must not apply to it.
-- Older processes call the functions of this schema, so their claims keep to the turns and limits of groups too.
ALTER TABLE queues ADD COLUMN grouped boolean NOT NULL DEFAULT false, ADD COLUMN group_max double precision,
  ADD COLUMN group_rate_max double precision, ADD COLUMN group_rate_ms double precision;
CREATE TABLE groups (
  queue int NOT NULL,
  key text COLLATE "C" NOT NULL,
  turn bigint,
  last_turn bigint,
  active int NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,
  max_active double precision,
  rate_max double precision,
  rate_ms double precision,
  blocked_until bigint NOT NULL DEFAULT 0,
  window_ends bigint NOT NULL DEFAULT 0,
  window_used double precision NOT NULL DEFAULT 0,
  place boolean NOT NULL DEFAULT true,
  rests_until bigint,
  PRIMARY KEY (queue, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX groups_in_turn ON groups (queue, turn, key) WHERE turn IS NOT NULL AND place AND rests_until IS NULL;
CREATE INDEX groups_resting ON groups (queue, rests_until) WHERE rests_until IS NOT NULL;

CREATE TABLE group_notes (
  queue int NOT NULL,
  number bigint GENERATED ALWAYS AS IDENTITY,
  key text COLLATE "C" NOT NULL,
  freed int NOT NULL,
  entered boolean NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX group_notes_of_key ON group_notes (queue, key);
