// The verbs of the memory store. Each does all its work before it returns, which makes it atomic: no verb here may ever await.
import type { Operations } from '../door.js';
import { add } from './add.js';
import { change } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import * as inspect from './inspect.js';
import * as lock from './lock.js';
import * as named from './named-lock.js';
import { check, probe } from './probe.js';
import { schedule } from './schedule.js';
import * as session from './session.js';
import { settle } from './settle.js';
import { noLinks } from './state/links.js';
import type { Memory } from './state/memory.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

export const operations: Operations<Memory> = {
  add: (memory, queue, jobs, call) => memory.write(queue, (state, now) => add(state, jobs, call, now)),
  claim: (memory, queue, request) => {
    const reply = memory.write(queue, (state, now) => claim(state, request, now));
    memory.wakeWhenDue(queue, reply);
    return reply;
  },
  settle: (memory, queue, outcomes, call, request) => {
    const reply = memory.write(queue, (state, now) => settle(state, outcomes, call, request, now));
    if (reply.claimed !== undefined) memory.wakeWhenDue(queue, reply.claimed);
    return reply;
  },
  openSession: (memory, opened) => memory.write(opened.queue, (state, now) => session.openSession(state, opened, now)),
  renew: (memory, renewals) =>
    renewals.map((renewal) => memory.write(renewal.queue, (state, now) => session.renew(state, renewal, now))),
  closeSessions: (memory, sessions, how) => {
    for (const { queue, id } of sessions) memory.write(queue, (state, now) => session.closeSession(state, id, how, now));
  },
  sweep: (memory, queue, limit) => memory.write(queue, (state, now) => sweep(state, limit, now)),
  probe: (memory, queue) => memory.write(queue, (state) => probe(state)),
  checkSessions: (memory, sessions) => sessions.map(({ queue, id }) => check(memory.state(queue), id, memory.now())),
  extend: (memory, queue, extensions) =>
    memory.write(queue, (state, now) => extensions.map((extension) => lock.extend(state, extension, now))),
  acquire: (memory, queue, requests) =>
    memory.write(queue, (state, now) => requests.map((request) => named.acquire(state, request, now))),
  letGo: (memory, queue, locks) => memory.write(queue, (state, now) => locks.map((ref) => named.letGo(state, ref, now))),
  configure: (memory, queue, settings) => memory.write(queue, (state, now) => control.configure(state, settings, now)),
  write: (memory, queue, writes) => memory.write(queue, (state, now) => writes.map((one) => write(state, one, now))),
  change: (memory, queue, target, what) => memory.write(queue, (state, now) => change(state, target, what, now)),
  schedule: (memory, queue, changes) => memory.write(queue, (state, now) => changes.map((one) => schedule(state, one, now))),
  relay: () => ({ delivered: 0, more: false }),
  children: (memory, queue, jobId, query) => memory.state(queue).links.get(jobId)?.page(query) ?? noLinks(),
  forget: (memory, queue, what) => memory.write(queue, (state, now) => control.forget(state, what, now)),
  queues: (memory, limit, after) => inspect.queues(memory.queues, limit, after),
  jobs: (memory, queue, query) => inspect.jobs(memory.state(queue), query),
  steps: (memory, queue, jobId) => memory.state(queue).jobs.get(jobId)?.steps?.all() ?? [],
  status: (memory, queue, query) => inspect.status(memory.state(queue), query, memory.now()),
  logs: (memory, queue, jobId, range) => inspect.logs(memory.state(queue), jobId, range),
  events: (memory, queue, after, limit) => memory.state(queue).log.read(after, limit),
  locks: (memory, queue, query) => inspect.locks(memory.state(queue), query, memory.now()),
  sessions: (memory, queue) => inspect.sessions(memory.state(queue), queue, memory.now()),
  watch: (memory, queue, listener) => memory.state(queue).wake.watch(listener),
  // This store has no server whose settings could be wrong.
  onWarning: () => () => undefined,
};
