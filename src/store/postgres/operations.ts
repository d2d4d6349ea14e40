// The verbs of the PostgreSQL store. Every verb is one function of the schema, called in one round trip, so that it is one transaction
// whatever lies between. After its reply, the verb wakes the watchers of the queue: the server notifies other processes, not this one.
import type { Operations } from '../door.js';
import { add } from './add.js';
import { change } from './change.js';
import { claim } from './claim.js';
import { configure, forget } from './control.js';
import type { Engine } from './driver/engine.js';
import { events } from './events.js';
import { children } from './family.js';
import { jobs, locks, logs, queues, sessions, status, steps } from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { checkSessions, probe } from './probe.js';
import { schedule } from './schedule.js';
import { closeSessions, openSession, renew } from './session.js';
import { settle } from './settle.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

export const operations: Operations<Engine> = {
  add,
  claim,
  settle,
  openSession,
  renew,
  closeSessions,
  sweep,
  probe,
  relay: ({ relays }, queue, limit) => relays.relay(queue, limit),
  children,
  steps,
  checkSessions,
  extend,
  acquire,
  letGo,
  configure,
  write,
  change,
  schedule,
  forget,
  queues,
  jobs,
  status,
  logs,
  events,
  locks,
  sessions,
  watch: (engine, queue, listener, what) => engine.watch(queue, listener, what),
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};
