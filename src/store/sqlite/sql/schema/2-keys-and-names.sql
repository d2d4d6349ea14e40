-- Version 2: lock keys, caps and named locks. named: the holders of named locks; places: the lock waiters, in the order of `place`.
-- lockKey: of the jobs with the same key, one at a time is active.
ALTER TABLE jobs ADD COLUMN lockKey TEXT;
CREATE INDEX jobsKeyed ON jobs (queue, lockKey, state, priority, ord) WHERE lockKey IS NOT NULL;
CREATE INDEX jobsBehind ON jobs (queue, priority, ord) WHERE state = 0;

ALTER TABLE queues ADD COLUMN maxActive REAL NOT NULL DEFAULT -1;
ALTER TABLE queues ADD COLUMN keyed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN instance TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN slots INTEGER NOT NULL DEFAULT 1;

CREATE TABLE named (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  session TEXT NOT NULL,
  fence INTEGER NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX namedBySession ON named (queue, session);

CREATE TABLE places (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  session TEXT NOT NULL,
  keptUntil INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX placesByToken ON places (queue, name, token);
CREATE INDEX placesInLine ON places (queue, name, place);
CREATE INDEX placesBySession ON places (queue, session);

PRAGMA user_version = 2;
