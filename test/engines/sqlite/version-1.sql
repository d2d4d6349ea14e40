-- A file of schema version 1 with a job in every state: what the next versions must be able to open.
BEGIN TRANSACTION;
CREATE TABLE callers (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  usedAt INTEGER NOT NULL,
  reply TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "callers" VALUES(1,'p',1,1794743440249,'[{"id":"done","duplicate":false},{"id":"running","duplicate":false},{"id":"plain","duplicate":false},{"id":"urgent","duplicate":false},{"id":"ranked","duplicate":false},{"id":"later","duplicate":false}]');
INSERT INTO "callers" VALUES(1,'s',4,1794743440288,'dd');
CREATE TABLE clock (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  boot TEXT NOT NULL,
  offset REAL NOT NULL
) STRICT;
INSERT INTO "clock" VALUES(1,'another-boot',1.79472948437305908201e+12);
CREATE TABLE events (
  queue INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (queue, first)
) STRICT, WITHOUT ROWID;
INSERT INTO "events" VALUES(1,1,12,'[["added","done",{"jobName":"mail"}],["waiting","done"],["added","running",{"jobName":"mail"}],["waiting","running"],["added","plain",{"jobName":"mail"}],["waiting","plain"],["added","urgent",{"jobName":"mail"}],["waiting","urgent"],["added","ranked",{"jobName":"mail"}],["waiting","ranked"],["added","later",{"jobName":"mail"}],["delayed","later",{"delay":1000000000000}]]');
INSERT INTO "events" VALUES(1,13,13,'[["active","urgent"]]');
INSERT INTO "events" VALUES(1,14,14,'[["waiting","urgent",{"prev":"active"}]]');
INSERT INTO "events" VALUES(1,15,17,'[["active","urgent"],["active","done"],["active","running"]]');
INSERT INTO "events" VALUES(1,18,19,'[["completed","done",{"returnvalue":"\"ok\""}],["waiting","urgent",{"prev":"failed","failedReason":"r"}]]');
CREATE TABLE jobs (
  job INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  ord INTEGER NOT NULL,
  session TEXT,
  fence INTEGER,
  claimSeq INTEGER,
  endsAt INTEGER,
  timed INTEGER NOT NULL DEFAULT 0,
  dueAt INTEGER,
  delay REAL NOT NULL,
  addedAt INTEGER NOT NULL,
  timestamp REAL NOT NULL,
  attemptsMade INTEGER NOT NULL DEFAULT 0,
  attemptsStarted INTEGER NOT NULL DEFAULT 0,
  stalledCounter INTEGER NOT NULL DEFAULT 0,
  logFirst INTEGER NOT NULL DEFAULT 0,
  logNext INTEGER NOT NULL DEFAULT 0,
  processedOn INTEGER,
  finishedOn INTEGER,
  processedBy TEXT,
  name TEXT NOT NULL,
  opts TEXT NOT NULL,
  data TEXT NOT NULL,
  failedReason TEXT,
  stacktrace TEXT,
  progress TEXT,
  returnvalue TEXT
) STRICT;
INSERT INTO "jobs" VALUES(1,1,'done',4,0,6,'s',1794743440279001,NULL,NULL,0,NULL,0.0,1794743440249,1700000000000.0,1,1,0,0,0,1794743440279,1794743440288,NULL,'mail','{}','{"to":"a@b.example"}',NULL,NULL,NULL,'"ok"');
INSERT INTO "jobs" VALUES(2,1,'running',3,0,2,'s',1794743440279002,3,NULL,0,NULL,0.0,1794743440249,1700000000000.0,0,1,0,0,0,1794743440279,NULL,NULL,'mail','{}','{"to":"a@b.example"}',NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(3,1,'plain',1,0,3,NULL,NULL,NULL,NULL,0,NULL,0.0,1794743440249,1700000000000.0,0,0,0,0,0,NULL,NULL,NULL,'mail','{}','{"to":"a@b.example"}',NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,1,'urgent',1,0,-3,NULL,NULL,NULL,NULL,0,NULL,0.0,1794743440249,1700000000000.0,1,2,0,0,0,1794743440279,NULL,NULL,'mail','{}','{"to":"a@b.example"}','r','[]',NULL,NULL);
INSERT INTO "jobs" VALUES(5,1,'ranked',1,3,4,NULL,NULL,NULL,NULL,0,NULL,0.0,1794743440249,1700000000000.0,0,0,0,0,0,NULL,NULL,NULL,'mail','{}','{"to":"a@b.example"}',NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,1,'later',2,0,5,NULL,NULL,NULL,NULL,0,2794743440251,1000000000000.0,1794743440249,1700000000000.0,0,0,0,0,0,NULL,NULL,NULL,'mail','{}','{"to":"a@b.example"}',NULL,NULL,NULL,NULL);
CREATE TABLE logs (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  row TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE queues (
  queue INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 0,
  touchedAt INTEGER NOT NULL DEFAULT 0,
  paused INTEGER NOT NULL DEFAULT 0,
  limitedUntil INTEGER NOT NULL DEFAULT 0,
  windowEnds INTEGER NOT NULL DEFAULT 0,
  windowUsed INTEGER NOT NULL DEFAULT 0,
  windowMax INTEGER NOT NULL DEFAULT 0,
  lastId INTEGER NOT NULL DEFAULT 0,
  front INTEGER NOT NULL DEFAULT 0,
  back INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  firstEvent INTEGER NOT NULL DEFAULT 1,
  lastEvent INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  prioritized INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO "queues" VALUES(1,'q',5,1794743440288,0,0,0,0,0,0,-3,6,1794743440279002,1,19,2,1,1,1,1,0);
CREATE TABLE revocations (
  queue INTEGER NOT NULL,
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  fence INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (queue, session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  name TEXT NOT NULL,
  presence TEXT,
  durationMs REAL NOT NULL,
  maxStalls REAL NOT NULL,
  since INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  renewals INTEGER NOT NULL DEFAULT 0,
  suspected INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0,
  reaped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "sessions" VALUES(1,'s','box',7,'mailer','gone',30000.0,1.0,1794743440258,1794743470262,0,0,0,0);
CREATE UNIQUE INDEX jobsById ON jobs (queue, id);
CREATE INDEX jobsWaiting ON jobs (queue, priority, ord) WHERE state = 1;
CREATE INDEX jobsDelayed ON jobs (queue, dueAt, ord) WHERE state = 2;
CREATE INDEX jobsActive ON jobs (queue, session, claimSeq) WHERE state = 3;
CREATE INDEX jobsFinished ON jobs (queue, state, ord) WHERE state >= 4;
CREATE INDEX jobsEnding ON jobs (queue, endsAt) WHERE endsAt IS NOT NULL;
CREATE INDEX sessionsExpiring ON sessions (queue, expiresAt) WHERE reaped < 2;
PRAGMA application_id = 1214673780;
PRAGMA user_version = 1;
COMMIT;
