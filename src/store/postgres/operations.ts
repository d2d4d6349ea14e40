// The verbs of the PostgreSQL store. Every verb is one function of the schema, called in one round trip, so that it is one transaction
// whatever lies between. After its reply, the operation wakes the watchers of the queue: the server tells other processes, not this one.
import { noFamilies } from '../no-families.js';
import type { Operations } from '../door.js';
import { add, addWithin } from './add.js';
import { changeById } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import type { Engine } from './driver/engine.js';
import { joinTransaction } from './driver/transaction.js';
import { events } from './events.js';
import * as inspect from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { checkSessions, probe } from './probe.js';
import { schedule } from './schedule.js';
import { changeSelected } from './select.js';
import { closeSessions, openSession, renew } from './session.js';
import { settle } from './settle.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

type Verbs = Operations<Engine>;

const addOne: Verbs['add'] = async ({ server, wake, turns, known }, queue, jobs, call, transaction) => {
  if (transaction === undefined) {
    const { replies, told } = await turns.take(call, () => add(server, queue, jobs, call, wake.telling(queue)));
    wake.added(queue, jobs.length, told);
    return replies;
  }
  const joined = joinTransaction(server, transaction, wake.notification(queue));
  if (jobs.length === 0) return [];
  // Create the queue outside of the transaction, where it is committed at once. Otherwise other processes that use the name for the
  // first time would wait for the commit.
  const grouped = jobs.some(({ group }) => group !== undefined);
  if (known.get(queue) !== true && (grouped || !known.has(queue))) {
    if (grouped) await server.call('ensure_groups', { name: queue });
    else await server.call('ensure_queue', { name: queue });
    known.set(queue, grouped);
  }
  return addWithin(joined, queue, jobs);
};

const claimSome: Verbs['claim'] = async ({ server, wake, turns, fitting, unanswered }, queue, request) => {
  const doubtful = unanswered.has(request.session);
  unanswered.add(request.session);
  const changes = wake.claiming(queue);
  const sent = fitting.limit(queue, request);
  const reply = await turns.take({ caller: request.session, seq: request.seq }, () => claim(server, queue, sent, doubtful));
  unanswered.delete(request.session);
  fitting.learn(queue, request, sent, reply);
  wake.claimed(queue, changes, request.count, reply);
  // Another claim may have skipped the jobs that did not fit into this reply.
  if (reply.jobs.length > 0) wake.signal(queue, reply.more === true ? 'jobs' : 'news');
  return reply;
};

const settleAll: Verbs['settle'] = async (engine, queue, outcomes, call, request) => {
  const { server, wake, turns, fitting, unanswered, detours } = engine;
  const sent = request && fitting.limit(queue, request);
  const work = () => settle(server, queue, outcomes, call, sent, detours);
  const changes = wake.claiming(queue);
  const { room, ...reply } = await (call === undefined ? work() : turns.take(call, work));
  if (call !== undefined) unanswered.delete(call.caller);
  const { claimed } = reply;
  if (request !== undefined && sent !== undefined && claimed !== undefined) {
    fitting.learn(queue, request, sent, claimed);
    wake.claimed(queue, changes, request.count, claimed);
  }
  const back = outcomes.some(({ kind }) => kind !== 'completed' && kind !== 'failed');
  wake.signal(queue, back || room || claimed?.more === true ? 'jobs' : 'news');
  return reply;
};

export const operations: Verbs = {
  ...noFamilies,
  add: addOne,
  claim: claimSome,
  settle: settleAll,
  openSession: (engine, session) => engine.vouch((vouching) => openSession(engine.server, session, vouching)),
  renew: async ({ server, wake }, renewals) => {
    const replies = await renew(server, renewals);
    // Slots that a session gives up leave jobs for other sessions.
    for (const { queue, slots } of renewals) if (slots !== undefined) wake.signal(queue, 'jobs');
    return replies;
  },
  closeSessions: async ({ server, wake, unanswered }, sessions, how) => {
    await closeSessions(server, sessions, how);
    for (const queue of new Set(sessions.map((session) => session.queue))) wake.signal(queue, 'both');
    for (const { id } of sessions) unanswered.delete(id);
  },
  sweep: async ({ server, wake }, queue, limit) => {
    const { reaped, ...reply } = await sweep(server, queue, limit);
    if (reaped > 0) wake.signal(queue, 'both');
    else if (reply.stalled.length + reply.failed.length > 0) wake.signal(queue, 'jobs');
    return reply;
  },
  probe: ({ server, hinted }, queue) => probe(server, queue, hinted),
  checkSessions: ({ server }, sessions) => checkSessions(server, sessions),
  extend: ({ server }, queue, extensions) => extend(server, queue, extensions),
  acquire: ({ server }, queue, requests) => acquire(server, queue, requests),
  letGo: async ({ server, wake }, queue, locks) => {
    const replies = await letGo(server, queue, locks);
    if (replies.includes('done')) wake.signal(queue, 'locks');
    return replies;
  },
  configure: async ({ server, wake }, queue, settings) => {
    await control.configure(server, queue, settings);
    wake.signal(queue, 'jobs');
  },
  write: async ({ server, wake }, queue, writes) => {
    const replies = await write(server, queue, writes);
    if (writes.some(({ kind }) => kind === 'progress' || kind === 'event')) wake.signal(queue, 'news');
    return replies;
  },
  change: async ({ server, wake }, queue, target, change) => {
    const reply = Array.isArray(target)
      ? await changeById(server, queue, target, change)
      : await changeSelected(server, queue, target, change);
    // After a removal too: another job of the key may come first now.
    if (reply.changed.length > 0) wake.signal(queue, 'jobs');
    return reply;
  },
  schedule: async ({ server, wake }, queue, changes) => {
    const replies = await schedule(server, queue, changes);
    if (replies.some(({ status }) => status === 'done')) wake.signal(queue, 'jobs');
    return replies;
  },
  forget: async ({ server, wake }, queue, what) => {
    const removed = await control.forget(server, queue, what);
    if ('all' in what) wake.signal(queue, 'jobs');
    return removed;
  },
  queues: ({ server }, limit, after) => inspect.queues(server, limit, after),
  jobs: ({ server }, queue, query) => inspect.jobs(server, queue, query),
  status: ({ server }, queue, query) => inspect.status(server, queue, query),
  logs: ({ server }, queue, jobId, range) => inspect.logs(server, queue, jobId, range),
  events: ({ server }, queue, after, limit) => events(server, queue, after, limit),
  locks: ({ server }, queue, query) => inspect.locks(server, queue, query),
  sessions: ({ server }, queue) => inspect.sessions(server, queue),
  watch: (engine, queue, listener, what) => engine.watch(queue, listener, what),
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};
