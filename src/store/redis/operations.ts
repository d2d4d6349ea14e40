// The verbs of the Redis store. Every verb is one script (long lists: one per part), atomic on the server, on Redis' clock. The scripts
// wake the watchers. The store must never send a call twice by itself: only the caller knows whether a call can be repeated.
import type { Operations } from '../door.js';
import { add } from './add.js';
import { addFamily, isOfFamily } from './add-family.js';
import { change } from './change.js';
import { claim } from './claim.js';
import { configure, forget } from './control.js';
import type { Engine } from './driver/engine.js';
import { events } from './events.js';
import { children } from './family.js';
import { jobs, locks, logs, sessions, steps } from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { probe } from './probe.js';
import { schedule } from './schedule.js';
import { checkSessions, closeSessions, openSession, renew } from './session.js';
import { settle } from './settle.js';
import { status } from './state/status.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

export const operations: Operations<Engine> = {
  add: (engine, queue, added, call) => (added.some(isOfFamily) ? addFamily : add)(engine, queue, added, call),
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
  queues: ({ registry }, limit, after) => registry.list(limit, after),
  jobs,
  status,
  logs,
  events,
  locks,
  sessions,
  watch: ({ wake }, queue, listener, what) => wake.watch(queue, listener, what),
  // Reports the current warnings at once, and later ones at every new connection.
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};
