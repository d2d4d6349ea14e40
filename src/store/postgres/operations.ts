// The verbs of the PostgreSQL store. Every verb is one function of the schema, called in one round trip, so that it is one transaction
// whatever lies between. After its reply, the operation wakes the watchers of the queue: the server notifies other processes, not this one.
import type { Operations } from '../door.js';
import { add, addWithin } from './add.js';
import { addFamily, ensureFamilies, isOfFamily, queuesOf } from './add-family.js';
import { changeById } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import type { Engine } from './driver/engine.js';
import type { Calls } from './driver/server.js';
import { joinTransaction } from './driver/user-transaction.js';
import { events } from './events.js';
import { children } from './family.js';
import * as inspect from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { checkSessions, probe } from './probe.js';
import { schedule } from './schedule.js';
import { changeSelected } from './select.js';
import { closeSessions, openSession, renew } from './session.js';
import { settle, settleWithin } from './settle.js';
import { sweep } from './sweep.js';
import { write } from './write.js';

type Verbs = Operations<Engine>;

/** Calls functions that may write messages, and then delivers these before it returns. */
async function sending<T>({ server, relays }: Engine, queues: string[], work: (calls: Calls) => Promise<T>): Promise<T> {
  let hasSent = false;
  const onSent = (): void => void (hasSent = true);
  const result = await work({ call: (name, values, patienceMs) => server.callAndSend(name, values, onSent, patienceMs) });
  if (hasSent) await relays.after(...queues);
  return result;
}

const addRelated: Verbs['add'] = async ({ server, wake, callOrder, relays }, queue, jobs, call) => {
  const { replies, sent } = await callOrder.run(call, () => addFamily(server, queue, jobs, call));
  for (const changed of queuesOf(queue, jobs)) wake.signal(changed, 'jobs');
  // An existing child that has finished sends its end to its new parents, from its own queue.
  if (sent) await relays.after(...queuesOf(queue, jobs));
  return replies;
};

const addOne: Verbs['add'] = async (engine, queue, jobs, call, transaction) => {
  const { server, wake, callOrder, known, relays } = engine;
  const related = jobs.some(isOfFamily);
  if (transaction === undefined) {
    if (related) return addRelated(engine, queue, jobs, call);
    const { replies, notified, sent } = await callOrder.run(call, () =>
      add(server, queue, jobs, call, wake.ownNotification(queue)),
    );
    wake.added(queue, jobs.length, notified);
    if (sent) await relays.after(queue);
    return replies;
  }
  const joined = joinTransaction(server, transaction, wake.notification(related ? queuesOf(queue, jobs) : [queue]));
  if (jobs.length === 0) return [];
  // Create the queue outside of the transaction, where it is committed at once. Otherwise other processes that use the name for the
  // first time would wait for the commit.
  for (const name of queuesOf(queue, jobs)) {
    const grouped = jobs.some((job) => job.group !== undefined && (job.queue ?? queue) === name);
    if (known.get(name) === true || (!grouped && known.has(name))) continue;
    if (grouped) await server.call('ensure_groups', { name });
    else await server.call('ensure_queue', { name });
    known.set(name, grouped);
  }
  await ensureFamilies(server, queue, jobs, engine.related);
  return related ? (await addFamily(joined, queue, jobs)).replies : addWithin(joined, queue, jobs);
};

const claimSome: Verbs['claim'] = async ({ server, wake, callOrder, fitting, unanswered }, queue, request) => {
  const doubtful = unanswered.has(request.session);
  unanswered.add(request.session);
  const changes = wake.claiming(queue);
  const sent = fitting.limit(queue, request);
  const reply = await callOrder.run({ caller: request.session, seq: request.seq }, () => claim(server, queue, sent, doubtful));
  unanswered.delete(request.session);
  fitting.learn(queue, request, sent, reply);
  wake.claimed(queue, changes, request.count, reply);
  // Another claim may have skipped the jobs that did not fit into this reply.
  if (reply.jobs.length > 0) wake.signal(queue, reply.more === true ? 'jobs' : 'news');
  return reply;
};

const settleAll: Verbs['settle'] = async (engine, queue, outcomes, call, request, transaction) => {
  const { server, wake, callOrder, fitting, unanswered, detours, joined } = engine;
  if (transaction !== undefined) {
    return settleWithin(joinTransaction(server, transaction, wake.notification([queue])), queue, outcomes, joined);
  }
  const sent = request && fitting.limit(queue, request);
  const work = () => settle(server, queue, outcomes, call, sent, detours, joined);
  const changes = wake.claiming(queue);
  const { room, sent: hasSent, ...reply } = await (call === undefined ? work() : callOrder.run(call, work));
  if (call !== undefined) unanswered.delete(call.caller);
  const { claimed } = reply;
  if (request !== undefined && sent !== undefined && claimed !== undefined) {
    fitting.learn(queue, request, sent, claimed);
    wake.claimed(queue, changes, request.count, claimed);
  }
  const back = outcomes.some(({ kind }) => kind !== 'completed' && kind !== 'failed');
  wake.signal(queue, back || room || claimed?.more === true ? 'jobs' : 'news');
  if (hasSent) await engine.relays.after(queue);
  return reply;
};

export const operations: Verbs = {
  relay: ({ relays }, queue, limit) => relays.relay(queue, limit),
  children: ({ server }, queue, jobId, query) => children(server, queue, jobId, query),
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
  closeSessions: async (engine, sessions, how) => {
    const queues = [...new Set(sessions.map((session) => session.queue))];
    await sending(engine, queues, (calls) => closeSessions(calls, sessions, how));
    for (const queue of queues) engine.wake.signal(queue, 'both');
    for (const { id } of sessions) engine.unanswered.delete(id);
  },
  sweep: async ({ server, wake, relays }, queue, limit) => {
    const { reaped, sent, ...reply } = await sweep(server, queue, limit);
    if (sent === true) await relays.after(queue);
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
  write: async ({ server, wake }, queue, writes, transaction) => {
    if (transaction !== undefined) {
      return write(joinTransaction(server, transaction, wake.notification([queue])), queue, writes, true);
    }
    const replies = await write(server, queue, writes, false);
    // A signal may have moved a job to waiting.
    if (writes.some((item) => item.kind === 'step' && item.token === undefined)) wake.signal(queue, 'jobs');
    else if (writes.some(({ kind }) => kind === 'progress' || kind === 'event')) wake.signal(queue, 'news');
    return replies;
  },
  change: async (engine, queue, target, change) => {
    const reply = await sending(engine, [queue], (calls) =>
      Array.isArray(target) ? changeById(calls, queue, target, change) : changeSelected(calls, queue, target, change),
    );
    // After a removal too: another job of the key may come first now.
    if (reply.changed.length > 0) engine.wake.signal(queue, 'jobs');
    return reply;
  },
  schedule: async (engine, queue, changes) => {
    const replies = await sending(engine, [queue], (calls) => schedule(calls, queue, changes));
    if (replies.some(({ status }) => status === 'done')) engine.wake.signal(queue, 'jobs');
    return replies;
  },
  forget: async ({ server, wake }, queue, what) => {
    const removed = await control.forget(server, queue, what);
    if ('all' in what) wake.signal(queue, 'jobs');
    return removed;
  },
  queues: ({ server }, limit, after) => inspect.queues(server, limit, after),
  jobs: ({ server }, queue, query) => inspect.jobs(server, queue, query),
  steps: ({ server }, queue, jobId) => inspect.steps(server, queue, jobId),
  status: ({ server }, queue, query) => inspect.status(server, queue, query),
  logs: ({ server }, queue, jobId, range) => inspect.logs(server, queue, jobId, range),
  events: ({ server }, queue, after, limit) => events(server, queue, after, limit),
  locks: ({ server }, queue, query) => inspect.locks(server, queue, query),
  sessions: ({ server }, queue) => inspect.sessions(server, queue),
  watch: (engine, queue, listener, what) => engine.watch(queue, listener, what),
  onWarning: ({ warnings }, listener) => warnings.listen(listener),
};
