-- Families and dead letters (contract/families.ts).
-- queues.parents, journal.parents: the jobs in waiting-children; null in the journal: no change.
-- queues.scheduled is also set for queues that send or get messages. Without it, claims do not look for messages.
-- families: how many links of a parent are in each state. A row of its own, so that plain jobs stay as they are.
-- links: one row for each child of a parent. `since` is the number that was drawn when the link was made, and `sent` that of the last message
--   that changed the link. Only a transaction that holds the lock of the parent's job changes its links or its row in families.
-- outbox: messages to jobs of any queue, which relay.sql delivers. A message about a child draws its number while its transaction holds the
--   lock of the child's job, so the numbers of one child grow in the order of its commits.
CREATE SEQUENCE messages;
ALTER TABLE queues ADD COLUMN parents bigint NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN parents int;
CREATE TABLE families (
  queue int NOT NULL,
  parent text COLLATE "C" NOT NULL,
  pending int NOT NULL DEFAULT 0,
  processed int NOT NULL DEFAULT 0,
  failed int NOT NULL DEFAULT 0,
  ignored int NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, parent)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE links (
  queue int NOT NULL,
  parent text COLLATE "C" NOT NULL,
  child_queue int NOT NULL,
  child text COLLATE "C" NOT NULL,
  state text NOT NULL DEFAULT 'pending',
  since bigint NOT NULL,
  sent bigint NOT NULL,
  text text,
  PRIMARY KEY (queue, parent, child_queue, child)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX links_pending ON links (queue, parent, child_queue, child) WHERE state = 'pending';

CREATE TABLE outbox (
  queue int NOT NULL,
  number bigint NOT NULL DEFAULT nextval('messages'),
  to_queue text COLLATE "C" NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_by_receiver ON outbox (to_queue, number);
