// The verbs of the Redis store. Every verb is one script (long lists: one per part), atomic on the server, on Redis' clock. The scripts
// wake the watchers. The store must never send a call twice by itself: only the caller knows whether a call can be repeated.
import type { Operations } from '../door.js';
import { add } from './add.js';
import { addFamily, isOfFamily } from './add-family.js';
import { changeById, changeSelected } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import { readEvents } from './events.js';
import { children } from './family.js';
import * as inspect from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { probe } from './probe.js';
import { schedule } from './schedule.js';
import * as session from './session.js';
import { settle } from './settle.js';
import type { Engine } from './driver/engine.js';
import { status } from './state/status.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

export const operations: Operations<Engine> = {
  add: (engine, queue, jobs, call) => {
    if (jobs.some(isOfFamily)) return addFamily(engine, queue, jobs, call);
    engine.registry.ensure(queue);
    const added = add(engine, queue, jobs, call);
    engine.wake.sent(queue);
    return added;
  },
  claim: ({ run }, queue, request) => claim(run, queue, request),
  settle: (engine, queue, outcomes, call, request) => settle(engine, queue, outcomes, call, request),
  openSession: async ({ run, presence, registry }, opened) => {
    registry.write(opened.queue);
    await session.openSession(run, opened, presence.current);
    presence.vouchFor(opened.queue, opened.id);
  },
  renew: async ({ run, presence }, renewals) => {
    const replies = await session.renew(run, renewals, presence.current);
    renewals.forEach(({ queue, id }, index) => {
      if (replies[index]?.alive === true) presence.vouchFor(queue, id);
      else presence.forget(queue, id);
    });
    return replies;
  },
  closeSessions: async (engine, sessions, how) => {
    await session.closeSessions(engine, sessions, how);
    for (const { queue, id } of sessions) engine.presence.forget(queue, id);
  },
  sweep: (engine, queue, limit) => sweep(engine, queue, limit),
  probe: (engine, queue) => probe(engine, queue),
  relay: ({ relays }, queue, limit) => relays.relay(queue, limit),
  children: ({ run }, queue, jobId, query) => children(run, queue, jobId, query),
  steps: ({ run }, queue, jobId) => inspect.steps(run, queue, jobId),
  checkSessions: ({ run }, sessions) => session.checkSessions(run, sessions),
  extend: ({ run }, queue, extensions) => extend(run, queue, extensions),
  acquire: ({ run }, queue, requests) => acquire(run, queue, requests),
  letGo: ({ run }, queue, locks) => letGo(run, queue, locks),
  configure: ({ run }, queue, settings) => control.configure(run, queue, settings),
  write: ({ run }, queue, writes) => write(run, queue, writes),
  change: (engine, queue, target, change) =>
    Array.isArray(target) ? changeById(engine, queue, target, change) : changeSelected(engine, queue, target, change),
  schedule: (engine, queue, changes) => {
    engine.registry.ensure(queue);
    return schedule(engine, queue, changes);
  },
  forget: ({ run }, queue, what) => control.forget(run, queue, what),
  queues: ({ registry }, limit, after) => registry.list(limit, after),
  jobs: ({ run }, queue, query) => inspect.jobs(run, queue, query),
  status: ({ run }, queue, query) => status(run, queue, query),
  logs: ({ run }, queue, jobId, range) => inspect.logs(run, queue, jobId, range),
  events: ({ run }, queue, after, limit) => readEvents(run, queue, after, limit),
  locks: ({ run }, queue, query) => inspect.locks(run, queue, query),
  sessions: ({ run }, queue) => inspect.sessions(run, queue),
  watch: ({ wake }, queue, listener, what) => wake.watch(queue, listener, what),
  // Reports the current warnings at once, and later ones at every new connection.
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};
